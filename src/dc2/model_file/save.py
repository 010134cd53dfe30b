"""`save`, for estimators."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dc2.errors import ModelFileError
from dc2.model_file.archive import FORMAT, FORMAT_VERSION, write_archive
from dc2.model_file.registry import MODELS
from dc2.model_file.values import encode_model
from dc2.versions import __version__

__all__ = ["SaveMixin"]


class SaveMixin:
    """Gives an estimator that is registered by `saved_model` the method `save`; `dc2.load` reads the file back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `dc2.load` reads back: its predictions are the same, to the bit.

        The file takes kilobytes to a few megabytes, whatever the number of rows; only where `DC2Clustering` takes few
        rows as they are does the file hold them, and about as much again. Labels of the training rows are not in it,
        nor is what cannot be written down, such as a random generator or a progress callback: such parameters take
        their defaults. It is written under a temporary name and then renamed.

        Parameters
        ----------
        path : path
            The file, by custom ``.dc2``; an existing one is replaced.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        name = type(self).__name__
        if MODELS.get(name) is not type(self):
            savable = sorted(known for known, cls in MODELS.items() if issubclass(cls, SaveMixin))
            raise ModelFileError(
                f"A model file holds {', '.join(savable)}, not {name}. Use pickle, joblib or skops for classes of "
                "your own."
            )
        arrays: dict[str, NDArray[Any]] = {}
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dc2_version": __version__,
            **encode_model(self, "", arrays, self._saved_state()),
        }
        write_archive(path, header, arrays)

    def _saved_state(self) -> dict[str, Any]:
        """Return what was learned, by attribute: all that a pickle would hold."""
        parameters: Mapping[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        state: dict[str, Any] = self.__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in parameters}
