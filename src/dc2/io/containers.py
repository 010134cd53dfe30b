"""Features in the containers that users ask for, whatever the rows came from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin


class SourceTransformer(TransformerMixin):
    """A transformer that puts its features into containers itself, by `in_container`.

    scikit-learn would put whatever `transform` returns into what `set_output` asks for, also blocks that are yet to be
    read and arrays that are yet to be computed.
    """

    def __init_subclass__(cls, **parameters: Any) -> None:
        methods = {name: cls.__dict__[name] for name in ("transform", "fit_transform") if name in cls.__dict__}
        super().__init_subclass__(**parameters)  # makes `set_output` available, and wraps these methods
        for name, method in methods.items():
            setattr(cls, name, method)


class _Handed(TransformerMixin):
    """A transformer that returns given features; scikit-learn wraps them by the rules of `self`."""

    def transform(self, X: Any, features: Any) -> Any:
        return features


def in_container(features: Any, X: Any, owner: Any) -> Any:
    """Put features into what the owner's `set_output` asks for; blocks and lazy arrays stay what they are."""
    in_memory = isinstance(features, np.ndarray) or sparse.issparse(features)
    return _Handed.transform(owner, X, features) if in_memory else features
