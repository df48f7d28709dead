# SPDX-License-Identifier: Apache-2.0
"""The nodes that a command may choose from: ``--from``, ``--include``, ``--exclude``, Slurm."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.lookup import rows_of
from nidmap.placement.machine import Machine
from nidmap.placement.names.pasted import read_list
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.scheduler.kinds import ANY
from nidmap.placement.support.array_types import Ints
from nidmap.placement.ui import say, warn

if TYPE_CHECKING:
    from nidmap.placement.scheduler.availability import Availability
    from nidmap.placement.slurm.nodes import SlurmNodes


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The nodes to choose from, according to a command's options."""

    # include, exclude: (k,), rows that must, and must not, be chosen
    include: Ints
    exclude: Ints
    # The answer for ``--from``, or Slurm's; None if neither was asked
    availability: Availability | None = None

    @property
    def slurm(self) -> SlurmNodes | None:
        """What Slurm reported about its nodes, if it was asked."""
        return None if self.availability is None else self.availability.slurm

    def request(self, count: int, kind: str) -> NodeRequest:
        """Return the request for `count` of the nodes that may be chosen.

        `kind`: the kind of nodes that is wanted (`scheduler.kinds`); '': of a list all.
        """
        now = self.availability
        listed = now is not None and now.named
        nodes = NodeRequest(count) if now is None else now.request(count)
        kind = kind or (ANY if listed else "")
        return replace(nodes, include=self.include, exclude=self.exclude, kind=kind)


def candidates(
    machine: Machine,
    count: int,
    source: str | None,
    include: str | None = None,
    exclude: str | None = None,
    **slurm: str | None,
) -> Candidates:
    """Read the lists that the options name, or ask Slurm for idle and promised nodes.

    `count`: nodes wanted. `source`, `include`, `exclude`: ``--from``, ``--include``,
    ``--exclude``. `slurm`: ``partition``, ``constraint``, ``reservation``.
    """
    answer = None
    if source is not None or any(slurm.values()):
        from nidmap.placement.scheduler import availability

        answer = availability.ask_availability(machine, source, count, **slurm)
        tell = say if answer.promised is None else warn  # not hidden by --quiet
        for note in answer.notes:
            tell(f"nidmap: {note}")
    return Candidates(
        _listed_rows(machine, include, "--include"),
        _listed_rows(machine, exclude, "--exclude"),
        answer,
    )


def refuse_slurm_options(source: str | None, values: Collection[str | None]) -> None:
    """Refuse options that filter Slurm's nodes where another source says what is free."""
    if source not in (None, "idle") and any(values):
        raise UsageError(
            "--partition, --constraint and --reservation ask Slurm", "use them with --from idle"
        )


def _listed_rows(machine: Machine, text: str | None, option: str) -> Ints:
    """Return the rows that a list option names, in its order; no rows for None."""
    if text is None:
        return np.empty(0, dtype=np.int64)
    content, source = read_list(text, option)
    return rows_of(machine, content, source=source, repeats=True)
