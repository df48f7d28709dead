"""What a user asked ``nidmap run`` for: the one description that goes from command to launch.

It is made before anything is loaded that could fail, and holds words as they were given:
`rankmap.launch.job.read_job` checks them, in the child process that plans, where what is
wrong with them cannot cost the user their job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankmap.commands.model import JobArguments

__all__ = ["RunRequest"]

#: The part of the patience that choosing an order may take: as long as ``nidmap order`` usually.
_SEARCH = 2 / 3

#: Seconds that a launcher or Slurm may take to answer before a launch: as asked where patience
#: ends, and where it has no limit.
_ANSWER, _ANSWER_UNHURRIED = 2.0, 10.0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call of ``nidmap run``, or the part of another command that launches.

    Attributes
    ----------
    command : tuple of str
        The launcher, its options, the program.
    job : JobArguments
        Machine, nodes, ranks and pattern.
    strategy : str
    order_file : str or None
        A file with the order, of the format that its name states; None: one is made.
    bind : bool
        Arrange ranks inside the nodes too, and bind them to their cores.
    launcher_order : str or None
        ``sorted`` or ``given``; None: not stated.
    mpi : str
        ``cray-mpich``, ``other``, or ``auto``: by the machine's network, else by the
        modules loaded.
    order_dir : str or None
        Directory for the order file; None: one of its own, until the job has ended.
    mapping_limit : str or None
        As ``--mapping-limit`` gives it; None: the library's own.
    patience : float
        Seconds of processor time that planning may take; 0: no limit.
    dry_run : bool
        True where nothing will be started, nor asked.
    """

    command: tuple[str, ...]
    job: JobArguments
    strategy: str = "auto"
    order_file: str | None = None
    bind: bool = False
    launcher_order: str | None = None
    mpi: str = "auto"
    order_dir: str | None = None
    mapping_limit: str | None = None
    patience: float = 0.0
    dry_run: bool = False

    @property
    def search_seconds(self) -> float:
        """Processor seconds that choosing an order may take.

        Examples
        --------
        >>> from rankmap.commands.model import JobArguments
        >>> requests = [RunRequest(("srun",), JobArguments(), patience=p) for p in (15.0, 0.0)]
        >>> [(request.search_seconds, request.answer_seconds) for request in requests]
        [(10.0, 2.0), (inf, 10.0)]
        """
        return _SEARCH * self.patience or math.inf

    @property
    def answer_seconds(self) -> float:
        """Seconds in which a launcher or Slurm must have answered a question."""
        return min(self.patience, _ANSWER) or _ANSWER_UNHURRIED
