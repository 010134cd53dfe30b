"""Places on the globe: latitude and longitude become points on a sphere, whose distances are in kilometres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, InputTypeError
from dc2.io.model_file import saved_record

EARTH_RADIUS_KM = 6371.0088  # mean radius
MOST_DEGREES = {"latitude": 90, "longitude": 360}


@saved_record
@dataclass(frozen=True)
class Sphere:
    """The map from latitude and longitude in degrees to points on a sphere of the Earth's radius, in kilometres.

    The straight distance of two points grows with the great-circle distance (haversine), so the nearest points are the
    same; below 1000 km the two differ by less than 0.11%.

    Attributes
    ----------
    latitude : {0, 1}
        Which column is the latitude; the other is the longitude.

    Examples
    --------
    >>> degrees = np.array([[0.0, 179.5], [0.0, -179.5], [90.0, 13.0]])
    >>> points = Sphere().apply(degrees)
    >>> arc_length(np.linalg.norm(points[0] - points[1:], axis=1)).round(1).tolist()
    [111.2, 10007.6]
    >>> Sphere().undo(points).round(1).tolist()
    [[0.0, 179.5], [0.0, -179.5], [90.0, 0.0]]
    """

    latitude: int = 0

    n_columns: ClassVar[int] = 2
    width: ClassVar[int] = 3
    axes: ClassVar[tuple[str, ...]] = ("x_km", "y_km", "z_km")

    @classmethod
    def of(cls, n_columns: int, names: tuple[str, ...] | None) -> Sphere:
        """Return the map for two columns: latitude first, unless their names are of longitude and latitude.

        Examples
        --------
        >>> Sphere.of(2, ("Longitude", "Latitude")), Sphere.of(2, None)
        (Sphere(latitude=1), Sphere(latitude=0))
        """
        if n_columns != cls.n_columns:
            raise InputError(
                f"metric='haversine': X has {n_columns} columns. Choose latitude and longitude in degrees, for "
                "instance by as_source(X, columns=['latitude', 'longitude'])."
            )
        first, second = ("", "") if names is None else map(str.lower, names)
        swapped = "lat" in second and ("lon" in first or "lng" in first)
        return cls(int(swapped))

    def check(self) -> None:
        """Raise if there is no such column; called when read from a model file."""
        if self.latitude not in (0, 1):
            raise InputError("the parts of a Sphere do not fit together.")

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are."""
        return ("longitude", "latitude") if self.latitude else ("latitude", "longitude")

    def apply(self, X: NDArray[Any], numbers: int | NDArray[np.int64] = 0) -> NDArray[Any]:
        """Return points of degrees, in their dtype; `numbers` of the first row, or of each, are for messages."""
        if not isinstance(X, np.ndarray):
            raise InputTypeError("metric='haversine': rows on a GPU are not supported. Pass rows in host memory.")
        # In float64 and in one piece, so that the same place gives the same bits in any block.
        degrees = X.T.astype(np.float64, order="C")
        for column, name in enumerate(self.names):
            self._check_range(degrees[column], name, numbers)
        latitude = degrees[self.latitude]
        longitude = np.radians(np.remainder(degrees[1 - self.latitude], 360.0))  # 180 and -180 are the same
        from_axis = np.sin(np.radians(90.0 - np.abs(latitude)))  # 0 at the poles, exactly
        points = np.empty((len(X), 3), X.dtype)
        points[:, 0] = EARTH_RADIUS_KM * from_axis * np.cos(longitude)
        points[:, 1] = EARTH_RADIUS_KM * from_axis * np.sin(longitude)
        points[:, 2] = EARTH_RADIUS_KM * np.sin(np.radians(latitude))
        points += 0.0  # no negative zeros
        return points

    def _check_range(self, degrees: NDArray[np.float64], name: str, numbers: int | NDArray[np.int64]) -> None:
        most = MOST_DEGREES[name]
        beyond = np.flatnonzero(np.abs(degrees) > most)
        if len(beyond):
            first = int(beyond[0])
            row = numbers + first if isinstance(numbers, int) else int(numbers[first])
            raise InputError(
                f"metric='haversine': row {row} has the {name} {degrees[first]:g}, beyond {most} degrees. "
                "Columns are latitude, then longitude, unless their names say otherwise."
            )

    def undo(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the degrees of the places above or below points; means of places are inside the sphere."""
        latitude = np.degrees(np.arctan2(X[:, 2], np.hypot(X[:, 0], X[:, 1])))
        longitude = np.degrees(np.arctan2(X[:, 1], X[:, 0]))
        degrees: NDArray[Any] = np.stack([latitude, longitude], axis=1)
        return degrees[:, ::-1] if self.latitude else degrees

    def unwrapped(self, degrees: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return degrees as they are, longitudes within 180 of that of a centre: nothing jumps at the date line."""
        unwrapped = degrees.copy()
        longitude, middle = 1 - self.latitude, centre[1 - self.latitude]
        unwrapped[:, longitude] = middle + np.remainder(degrees[:, longitude] - middle + 180.0, 360.0) - 180.0
        return unwrapped


def arc_length(straight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return great-circle distances from straight ones, in kilometres."""
    arcs: NDArray[np.float64] = 2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(straight / (2 * EARTH_RADIUS_KM), 1.0))
    return arcs
