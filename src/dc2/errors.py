"""The errors dc2 raises: a small tree under ``ValueError``, ``TypeError`` and ``RuntimeError``.

A message says what is wrong, why, and what to do, with the user's own numbers in it.
"""

from typing import Any

__all__ = [
    "ClustersDoNotShowWarning",
    "ColumnTypeError",
    "DeviceError",
    "InputError",
    "InputTypeError",
    "MissingValuesError",
    "ModelFileError",
    "ParameterError",
    "PreparationNote",
    "SourceError",
    "printable",
]


class NamesParameter(Exception):
    """An error that may name a parameter, so that each front end spells it in its own way.

    Parameters
    ----------
    message : str
        What Python users read.
    parameter : str, optional
        The parameter that is wrong, or the one that helps.
    value : object, optional
        Its value, or the one that helps; None if there is no single one.
    problem : str, optional
        What is wrong, without the name of the parameter or a way out in Python.
    """

    def __init__(
        self, message: str = "", *, parameter: str | None = None, value: Any = None, problem: str | None = None
    ) -> None:
        super().__init__(message)
        self.parameter, self.value, self.problem = parameter, value, problem


class InputError(NamesParameter, ValueError):
    """Data that cannot be used: wrong shape, missing values, too few rows."""


class MissingValuesError(InputError):
    """Data with missing values where none may be missing."""


class InputTypeError(NamesParameter, TypeError):
    """Data of a kind that cannot be used at all."""


class ParameterError(NamesParameter, ValueError):
    """A parameter whose value is impossible, alone or for the data at hand."""


class SourceError(InputError):
    """A file or stream that broke while it was read; the message names it."""


class ColumnTypeError(SourceError):
    """Columns of a text file hold other values further down than at its beginning.

    Attributes
    ----------
    columns : tuple of str
        Their names.
    """

    def __init__(self, message: str, columns: tuple[str, ...] = (), *, problem: str | None = None) -> None:
        super().__init__(message, parameter="columns", problem=problem)
        self.columns = columns


class DeviceError(RuntimeError):
    """A GPU that is missing, is full, or failed."""


class ModelFileError(ValueError):
    """A model file that cannot be read: damaged, foreign, or of an unknown version."""


class PreparationNote(UserWarning):
    """A note on columns that dc2 did not use as they were."""


class ClustersDoNotShowWarning(UserWarning):
    """The data do not support the requested number of clusters."""


def printable(text: str) -> str:
    r"""Return a text as it may be shown: characters that would steer a terminal are spelled out.

    Examples
    --------
    >>> print(printable("a\x1b[2J column"))
    a\x1b[2J column
    """
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1] for character in text
    )
