"""What arrays of numbers are called in signatures, and the extents of a grid."""

from placement.support.array_types import Array, Floats, Ints
from placement.support.array_types import Mask as Flags

__all__ = ["Array", "Flags", "Floats", "Ints", "Shape"]

#: Extents of a grid, or of a box in one.
Shape = tuple[int, ...]
