"""The errors dc2 raises: a small tree under ``ValueError``, ``TypeError`` and ``RuntimeError``.

A message says what is wrong, why, and what to do, with the user's own numbers in it.
"""

__all__ = [
    "ClustersDoNotShowWarning",
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


class InputError(ValueError):
    """Data that cannot be used: wrong shape, missing values, too few rows."""


class MissingValuesError(InputError):
    """Data with missing values where none may be missing."""


class InputTypeError(TypeError):
    """Data of a kind that cannot be used at all."""


class ParameterError(ValueError):
    """A parameter whose value is impossible, alone or for the data at hand."""


class SourceError(InputError):
    """A file or stream that broke while it was read; the message names it."""


class DeviceError(RuntimeError):
    """A graphics card that is not there, is full, or broke down."""


class ModelFileError(ValueError):
    """A model file that cannot be read: damaged, foreign, or of an unknown version."""


class PreparationNote(UserWarning):
    """Says once what was done to the columns of a table that could not be used as they were."""


class ClustersDoNotShowWarning(UserWarning):
    """A number of clusters was asked for that does not show in the data."""


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
