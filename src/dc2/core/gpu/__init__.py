"""The core on a GPU: the same functions with the same bits, for rows on the device.

CuPy's compiler compiles the kernels (`launch.hpp` and what it includes) on first use, for one dtype and width. dc2
imports this package only if rows are on a GPU or the user sets ``device="cuda"``.
"""

from dc2.core.gpu.device import Device, own_device
from dc2.core.gpu.device_rows import DeviceRows

__all__ = ["Device", "DeviceRows", "own_device"]
