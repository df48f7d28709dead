"""The options of ``nidmap plan``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["PlanOptions"]

#: The options that say what a job sends.
TRAFFIC = (
    "pattern", "grid", "bytes", "routing", "algorithm", "latency", "background",
    "background_load", "deadline",
)  # fmt: skip


@dataclass(frozen=True)
class PlanOptions:
    """The options of the command, as given; `form` and `strategy` as they apply."""

    specs: tuple[str, ...]
    count: int
    strategy: str
    source: str | None
    exclude: str | None
    include: str | None
    partition: str | None
    constraint: str | None
    reservation: str | None
    ppn: int | None
    per_blade: int
    contiguous: bool
    slack: int
    seed: int
    check: bool
    form: str
    output: str | None
    pattern: str | None
    grid: str | None
    bytes: float | None
    routing: str | None
    algorithm: str | None
    latency: float | None
    background: str | None
    background_load: float | None
    deadline: float | None
    order_out: str | None
    order_format: str | None

    @property
    def traffic(self) -> dict[str, Any]:
        """What is said of the job's traffic, by the option's name."""
        return {name: value for name in TRAFFIC if (value := getattr(self, name)) is not None}

    @property
    def slurm(self) -> dict[str, str | None]:
        """The options that narrow what Slurm offers."""
        return {name: getattr(self, name) for name in ("partition", "constraint", "reservation")}
