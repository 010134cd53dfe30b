"""The core on a graphics card: the same functions, the same bits, where the rows lie.

CuPy's compiler compiles the kernels (`launch.hpp` and what it includes) on first use, for one dtype and width. Nothing
here is imported unless rows lie on a card or ``device="cuda"`` is given.
"""

from dc2.core.gpu.card import Card, own_card
from dc2.core.gpu.rows import DeviceRows

__all__ = ["Card", "DeviceRows", "own_card"]
