"""FFTs in two and three dimensions on slabs and pencils, as FFTK does them.

``from workloads.fft import Transform`` for a program of one's own;
``nidmap bench fft`` for the measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workloads.fft.scaling import PowerLaw, fit_gamma
    from workloads.fft.transform import Transform

__all__ = ["PowerLaw", "Transform", "fit_gamma"]


def __getattr__(name: str) -> Any:
    """Load a name when it is first asked for: numpy and MPI cost start-up time."""
    if name not in __all__:
        raise AttributeError(f"module 'workloads.fft' has no attribute {name!r}")
    from workloads.fft import scaling, transform

    return getattr(transform if name == "Transform" else scaling, name)
