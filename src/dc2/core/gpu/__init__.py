"""The core on a graphics card: the same functions, the same bits, where the rows lie.

The kernels (`device.hpp`, `blocks.hpp`) are compiled when they are first used, for one dtype and width, by way of CuPy.
Nothing here is imported unless rows lie on a card or ``device="cuda"`` asks for one.
"""

from dc2.core.gpu.card import Card, own_card
from dc2.core.gpu.rows import DeviceRows

__all__ = ["Card", "DeviceRows", "own_card"]
