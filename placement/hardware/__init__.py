"""What is inside a node: cores by cache, NUMA domain and socket; GPUs and NICs beside them."""

from __future__ import annotations

from placement.hardware.model import LEVELS, Core, Device, NodeHardware

__all__ = ["LEVELS", "Core", "Device", "NodeHardware"]
