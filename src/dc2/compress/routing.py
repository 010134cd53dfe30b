"""Router: sends rows through a tree and along neighbour lists to their signatures."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dc2 import core
from dc2.compress.places import Sphere
from dc2.compress.scaling import Scaling
from dc2.compress.signatures import Sums, raise_too_large
from dc2.core.reference import ADDING, Centres, NearestOut, SumsOut, hash_at, lanes_dot
from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.trees.tree import RPTree, raise_unusable

MOST_BEAM = 1024  # candidates of a search; wider ones would gain little


class RowRouter(Protocol):
    """Sends each row to a signature."""

    @property
    def centres(self) -> NDArray[Any]:
        """Where the signatures are."""

    @property
    def scaling(self) -> Scaling | Sphere | None:
        """What is applied to rows first."""

    def describe(self) -> str:
        """Return what divides the rows, for reports."""

    def assign(self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0) -> NDArray[np.int32]:
        """Return the number of each row's signature."""

    def nearest_few(self, X: NDArray[Any], few: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the nearest signatures of each row and their squared distances, nearest first."""


@saved_record
@dataclass(frozen=True, eq=False)
class Router:
    """Sends rows to signatures; small, however many rows it was made from.

    There is one tree, or one per partition if rows were partitioned at random. The centres are near the mean of the
    rows of each signature: the leaves of the first tree, then those of the second. With neighbour lists (its own, then
    the others, nearest first) a row searches from its leaf's signature for nearer ones.
    """

    trees: tuple[RPTree, ...]
    centres: NDArray[Any]
    neighbor_lists: NDArray[np.int32] | None = None  # (n_leaves, n_near)
    gaps: NDArray[Any] | None = None  # distances to the first of each list, less rounding errors; only save time
    deal_seed: int = 0  # assigns training rows to trees if there are several
    scaling: Scaling | Sphere | None = None  # applied to rows first: trees and centres are in scaled units
    beam: int = 1  # candidates that the search of a row holds
    reach: NDArray[np.float64] | None = None  # squared distance of each centre to the farthest row that was sent there

    takes_device_rows: ClassVar[bool] = True

    def check(self) -> None:
        """Raise if a row could be sent outside the arrays; called when a router was read from a model file."""
        leaves = sum(tree.n_leaves for tree in self.trees)
        neighbor_lists, gaps = self.neighbor_lists, self.gaps
        is_sound = (
            len(self.trees) > 0
            and self.centres.ndim == 2
            and len(self.centres) == leaves
            and bool(np.isfinite(self.centres).all())
            and all(tree.directions.dtype == self.dtype for tree in self.trees)
            and all(tree.directions.shape[1] == self.n_features for tree in self.trees)
            and type(self.deal_seed) is int
            and 0 <= self.deal_seed < 2**64
            and (self.scaling is None or self.scaling.width == self.n_features)
            and (neighbor_lists is None) == (gaps is None)
            and type(self.beam) is int
            and 1 <= self.beam <= MOST_BEAM
            and (self.reach is None or (self.reach.shape == (leaves,) and bool((self.reach >= 0).all())))
        )
        if neighbor_lists is not None and gaps is not None:
            is_sound &= (
                neighbor_lists.dtype == np.int32
                and neighbor_lists.ndim == 2
                and len(neighbor_lists) == leaves
                and neighbor_lists.shape == gaps.shape
                and gaps.dtype == self.dtype
                and bool(((neighbor_lists >= 0) & (neighbor_lists < leaves)).all())
            )
        if not is_sound:
            raise InputError("the parts of a Router do not fit together.")

    @property
    def n_features(self) -> int:
        """Number of columns of the centres."""
        return int(self.centres.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which rows are routed."""
        return self.centres.dtype

    def describe(self) -> str:
        """Return a short description of what divides the rows."""
        return "Random cuts"

    def assign(
        self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0, rows: NDArray[Any] | None = None
    ) -> NDArray[np.int32]:
        """Return the signature of each row.

        With several trees it is that of the tree to which the row was dealt, if `rows` are the global numbers of
        training rows; else the nearest of its leaves' signatures.
        """
        X = self._on_routing_device(X)
        given, X = X, self.prepared(X, start)
        if len(self.trees) == 1:
            ids: NDArray[np.int32] = _empty(X, len(X), np.int32)
            if self._scan(0, X, NearestOut(ids)):
                raise_unusable(given, names, start)
            return _like_rows(X, ids)
        trees = zip(self.trees, self._starts(), strict=False)
        candidates = np.stack([tree.route(X, names, start) + first for tree, first in trees], axis=1)
        if rows is not None:
            dealt: NDArray[np.int32] = candidates[np.arange(len(X)), deal(self.deal_seed, rows, len(self.trees))]
            return dealt
        offs = [X - self.centres[column] for column in candidates.T]
        distances = np.stack([lanes_dot(off, off) for off in offs], axis=1)
        nearest = distances.argmin(axis=1)[:, None]
        return np.take_along_axis(candidates, nearest, axis=1)[:, 0].astype(np.int32)

    def nearest_few(self, X: NDArray[Any], few: int, beam: int | None = None) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the nearest few signatures that each row finds and their squared distances, nearest first.

        At most as many as a neighbour list holds. Another `beam` than the router's may be tried.
        """
        return self.nearest_and_few(X, few, beam)[1:]

    def nearest_and_few(
        self, X: NDArray[Any], few: int, beam: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]:
        """Return the results of `assign` and of `nearest_few` from one search; for one tree.

        The first of the few is the signature that `assign` returns. If `few` is larger than the beam, it is rarely
        a nearer one.
        """
        assert self.neighbor_lists is not None
        ids = _empty(X, len(X), np.int32)
        near_ids = _empty(X, (len(X), min(few, self.neighbor_lists.shape[1])), np.int32)
        squared = _empty(X, near_ids.shape, self.dtype)
        if self._scan(0, self.prepared(X), NearestOut(ids, near_ids, squared), beam=beam):
            raise_unusable(X, None, 0)
        if isinstance(X, np.ndarray):
            return ids, near_ids, squared
        return X.asnumpy(ids), X.asnumpy(near_ids), X.asnumpy(squared)

    def add_up(
        self,
        X: NDArray[Any],
        rows: NDArray[np.int64] | range,
        weights: NDArray[np.float64] | None,
        magic: NDArray[np.float64],
        sums: Sums,
        names: tuple[str, ...] | None = None,
        near_ids: NDArray[np.int32] | None = None,
        squared: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int32]:
        """Return the signature of each training row, and add it to `sums`; several threads may add to the same.

        `rows` are their global numbers, `magic` the grids of `dc2.compress.signatures.grids`. OUT `near_ids` (n_rows,
        few): as of `nearest_and_few`; needs one tree with neighbour lists. OUT `squared` (n_rows,): the squared
        distance of each row to its signature's centre; needs one tree.
        """
        X = self._on_routing_device(X)
        ids: NDArray[np.int32] = _empty(X, len(X), np.int32)
        given, X = X, self.prepared(X, int(rows[0]) if len(rows) else 0)
        weights = None if weights is None else np.ascontiguousarray(weights)
        if len(self.trees) == 1:
            found = NearestOut(ids)
            if near_ids is not None or (squared is not None and self.neighbor_lists is not None):
                shape = (len(X), 1) if near_ids is None else near_ids.shape
                found = NearestOut(ids, _empty(X, shape, np.int32), _empty(X, shape, self.dtype))
            if self._scan(0, X, found, weights, SumsOut(magic, *sums)):
                raise_unusable(given, names, int(rows[0]))
            if near_ids is not None:
                near_ids[:] = _on_host(X, found.near_ids)
            if squared is not None and self.neighbor_lists is None:  # by leaf alone no distance is known
                squared[:] = self._own_distances(given, X, ids)
                with ADDING:
                    np.maximum.at(sums.reach, _on_host(X, ids), squared)
            elif squared is not None:
                squared[:] = _on_host(X, found.near_squared)[:, 0]
            return _like_rows(X, ids)
        dealt = deal(self.deal_seed, np.asarray(rows), len(self.trees))
        for number, first in enumerate(self._starts()[:-1]):
            part = np.flatnonzero(dealt == number)
            part_ids = np.empty(len(part), np.int32)
            part_sums = Sums.zeros(self.trees[number].n_leaves, self.n_features)
            part_weights = None if weights is None else weights[part]
            part_out = SumsOut(magic, *part_sums)
            if self._scan(number, X[part], NearestOut(part_ids), part_weights, part_out):
                raise_unusable(given, names, int(rows[0]))
            ids[part] = part_ids + first
            leaves = slice(first, first + self.trees[number].n_leaves)
            with ADDING:
                Sums(sums.counts[leaves], sums.totals[:, leaves], sums.reach[leaves]).add(part_sums)
        return ids

    def _own_distances(self, given: Any, X: Any, ids: Any) -> NDArray[np.float64]:
        """Return the squared distance of each row to its signature's centre."""
        if not isinstance(X, np.ndarray):
            X, ids = self.prepared(np.asarray(given)), X.asnumpy(ids)
        off = X - self.centres[ids]
        return np.asarray(lanes_dot(off, off), np.float64)

    def means_on_device(self, X: Any, weights: NDArray[np.float64] | None, magic: NDArray[np.float64]) -> NDArray[Any]:
        """Return the mean of each signature's rows, which are on a GPU and scaled already.

        Gives the same bits as `add_up` and `Sums.means_and_spread`; the sums stay on the GPU.
        """
        (tree,) = self.trees
        means: NDArray[Any]
        means, bad_rows, bad_sums = X.means(weights, tree.arrays, self._centres_of(0), magic)
        if bad_rows:
            raise_unusable(X, None, 0)
        if bad_sums:
            raise_too_large(float(np.abs(self.centres).max()))
        return means

    def prepared(self, X: NDArray[Any], start: int = 0) -> NDArray[Any]:
        """Return rows as trees and centres have them: scaled, and in their dtype."""
        X = X.astype(self.dtype, copy=False)
        return X if self.scaling is None else self.scaling.apply(X, start)

    def _on_routing_device(self, X: Any) -> Any:
        """Return rows on the device that routes them: their own or, for several trees, the host."""
        return X if len(self.trees) == 1 else np.asarray(X)

    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(tree.n_leaves for tree in self.trees)])

    def _scan(
        self,
        number: int,
        X: NDArray[Any],
        found: NearestOut,
        weights: NDArray[np.float64] | None = None,
        sums: SumsOut | None = None,
        beam: int | None = None,
    ) -> int:
        """Route rows through one tree; return how many are not finite."""
        beam = self.beam if beam is None else beam
        if not isinstance(X, np.ndarray):
            centres = self._centres_of(number)._replace(beam=beam)
            return int(X.scan(weights, self.trees[number].arrays, centres, sums, found))
        return int(self._searchable[number].scan(X, weights, sums, found, beam))

    def _centres_of(self, number: int) -> Centres:
        """Return the centres of a tree's leaves: the same array each time, by which a GPU knows what it holds."""
        starts = self._starts()
        points = self.centres if len(self.trees) == 1 else self.centres[starts[number] : starts[number + 1]]
        return Centres(points, self.neighbor_lists, self.gaps, self.beam)

    @cached_property
    def _searchable(self) -> list[Any]:
        """What the core searches in, for each tree: made once, since checks and copies read all signatures."""
        return [core.searchable(tree.arrays, self._centres_of(number)) for number, tree in enumerate(self.trees)]

    def with_beam(self, beam: int) -> Router:
        """Return the router with a beam of another width."""
        router = replace(self, beam=beam)
        if "_searchable" in self.__dict__:
            router.__dict__["_searchable"] = self._searchable
        return router

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _empty(X: Any, shape: Any, dtype: Any) -> Any:
    """Return an empty array on the device of the rows."""
    return np.empty(shape, dtype) if isinstance(X, np.ndarray) else X.empty(shape, dtype)


def _on_host(X: Any, array: Any) -> NDArray[Any]:
    """Return an array that is on the device of the rows on the host."""
    host: NDArray[Any] = array if isinstance(X, np.ndarray) else X.asnumpy(array)
    return host


def _like_rows(X: Any, ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return signature numbers as the kind of array of the rows."""
    converted: NDArray[np.int32] = ids if isinstance(X, np.ndarray) else X.form(ids)
    return converted


def deal(seed: int, rows: NDArray[np.int64], parts: int) -> NDArray[np.intp]:
    """Return the random part of each row, which depends on the row's number alone."""
    return (hash_at(seed, rows) % np.uint64(parts)).astype(np.intp)


@saved_record
@dataclass(frozen=True, eq=False)
class StagedRouter:
    """Routers one after the other: rows within the reach of an earlier one never go to signatures of a later."""

    whole: Router  # of the signatures of all stages, for the nearest few of a row
    stages: tuple[Router, ...]  # without scaling, each with its reach
    numbers: tuple[NDArray[np.int32], ...]  # of each stage's signatures among all

    def check(self) -> None:
        """Raise if the parts do not fit together; called when it was read from a model file."""
        sizes = [len(stage.centres) for stage in self.stages]
        if (
            not self.stages
            or any(stage.reach is None or len(stage.trees) > 1 for stage in self.stages)
            or [len(numbers) for numbers in self.numbers] != sizes
            or not np.array_equal(np.sort(np.concatenate(self.numbers)), np.arange(len(self.centres)))
        ):
            raise InputError("the parts of a StagedRouter do not fit together.")

    @property
    def centres(self) -> NDArray[Any]:
        """Where the signatures are."""
        return self.whole.centres

    @property
    def scaling(self) -> Scaling | Sphere | None:
        """What is applied to rows first."""
        return self.whole.scaling

    @property
    def reach(self) -> NDArray[np.float64]:
        """The squared reach of each signature."""
        reach = np.empty(len(self.centres))
        for stage, numbers in zip(self.stages, self.numbers, strict=True):
            assert stage.reach is not None
            reach[numbers] = stage.reach
        return reach

    def describe(self) -> str:
        """Return a short description of what divides the rows."""
        return self.whole.describe()

    def nearest_few(self, X: NDArray[Any], few: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the nearest few of all signatures, and their squared distances."""
        return self.whole.nearest_few(X, few)

    def assign(self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0) -> NDArray[np.int32]:
        """Return the signature of each row: the nearest of those of the stages up to the first that reaches it."""
        return self._places(X, names, start)[0]

    def add_up(
        self,
        X: NDArray[Any],
        rows: NDArray[np.int64] | range,
        weights: NDArray[np.float64] | None,
        magic: NDArray[np.float64],
        sums: Sums,
        names: tuple[str, ...] | None = None,
        near_ids: None = None,
        squared: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int32]:
        """Return the signature of each row and add it to `sums`; `squared` is infinite for rows beyond every reach."""
        ids, own = self._places(X, names, int(rows[0]) if len(rows) else 0)
        X = self.whole.prepared(X)
        for stage, numbers in zip(self.stages, self.numbers, strict=True):
            here = np.flatnonzero(np.isin(ids, numbers))
            part = Sums.zeros(*stage.centres.shape)
            stage.add_up(X[here], range(len(here)), None if weights is None else weights[here], magic, part)
            with ADDING:
                sums.counts[numbers] += part.counts
                sums.totals[:, numbers] += part.totals
        if squared is not None:
            squared[:] = own
        return ids

    def with_stage(self, stage: Router, whole: Router, leaf_of: NDArray[np.intp]) -> StagedRouter:
        """Return the same with another stage, and with a router of all signatures, whose leaves `leaf_of` gives."""
        last = np.arange(len(self.centres), len(whole.centres))
        numbers = tuple(leaf_of[np.asarray(part)].astype(np.int32) for part in (*self.numbers, last))
        return StagedRouter(whole, (*self.stages, stage), numbers)

    def _places(
        self, X: NDArray[Any], names: tuple[str, ...] | None, start: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the signature of each row and the squared distance, infinite beyond every reach."""
        if not np.isfinite(X).all():
            raise_unusable(X, names, start)
        X = self.whole.prepared(X, start)
        ids, best, far = np.empty(len(X), np.int32), np.full(len(X), np.inf), np.arange(len(X))
        magic = np.ones((2, X.shape[1] + 2))
        for stage, numbers in zip(self.stages, self.numbers, strict=True):
            assert stage.reach is not None
            own = np.empty(len(far))
            found = stage.add_up(X[far], range(len(far)), None, magic, Sums.zeros(*stage.centres.shape), squared=own)
            nearer = own < best[far]
            ids[far[nearer]], best[far[nearer]] = numbers[found[nearer]], own[nearer]
            far = far[own > stage.reach[found]]
        squared = np.minimum(best, self.reach[ids])
        squared[far] = np.inf
        return ids, squared
