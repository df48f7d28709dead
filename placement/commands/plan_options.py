"""The options of ``nidmap plan``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["PlanOptions"]

#: The options that say what a job sends.
TRAFFIC = (
    "pattern", "grid", "bytes", "routing", "algorithm", "latency", "memory", "process",
    "payload", "first_contact", "background", "background_load", "deadline",
)  # fmt: skip


class PlanOptions(SimpleNamespace):
    """The options as the command declares them; `form` and `strategy` as they apply."""

    @property
    def traffic(self) -> dict[str, Any]:
        """What is said of the job's traffic, by the option's name."""
        return {name: value for name in TRAFFIC if (value := getattr(self, name)) is not None}

    @property
    def slurm(self) -> dict[str, str | None]:
        """The options that narrow what Slurm offers."""
        return {name: getattr(self, name) for name in ("partition", "constraint", "reservation")}
