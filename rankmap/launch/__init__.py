# SPDX-License-Identifier: Apache-2.0
"""Launchers: the command line that starts a job's ranks in order, one class per way.

A launcher reads the user's own command line, says how many ranks it would put
on each node (`Launcher.counts`), and returns what to run instead
(`Launcher.launch`): arguments and variables. Ours are the modules of
`nidmap.rankmap.launch.launchers`, each under its program's name; other distributions name
classes under the entry point group ``nidmap.launchers``. Nothing is run here; who wants to
know what a launcher does asks it (`nidmap.rankmap.launch.queries`).
"""

from __future__ import annotations

import os
import re
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from nidmap.placement.errors import LaunchError
from nidmap.placement.support.registry import Registry, modules_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints
    from nidmap.rankmap.binding import BoundOrder
    from nidmap.rankmap.emit.process_mapping import Mapping as ProcessMapping
    from nidmap.rankmap.launch.allocation import Allocation
    from nidmap.rankmap.launch.options import OptionTable
    from nidmap.rankmap.pattern import Pattern

#: Which MPI library the ranks use, as far as a launch depends on it.
CRAY, OTHER = "cray-mpich", "other"
MPICH, INTEL, OPENMPI = "mpich", "intel", "openmpi"

#: Variable in which ranks find the order file that they were launched with; for the ranks only.
LAUNCH = "NIDMAP_LAUNCH"

#: One argument of a command may not be longer (Linux: 128 KiB).
_LONGEST = 120_000

#: Names of MPI libraries' launchers; a distribution may append the library (``mpiexec.mpich``). The
#: library is determined by running the executable, not from its name.
MPIEXECS = ("mpiexec", "mpirun", "orterun", "prterun")
_MPIEXEC = re.compile(rf"(?:{'|'.join(MPIEXECS)})(?:[.-][A-Za-z0-9._-]+)?", re.ASCII)

#: A launcher's class, or a module of those for each MPI library.
_launchers: Registry[type[Launcher] | ModuleType] = Registry(
    "launcher",
    "nidmap.launchers",
    f"{__name__}.launchers",
    modules_in(os.path.join(os.path.dirname(__file__), "launchers"), hyphen="_"),
    MPIEXECS,
    "docs/reference/launchers.md",
)
names = _launchers.names


@dataclass(frozen=True, slots=True)
class Launch:
    """A command to run.

    Attributes
    ----------
    argv : tuple of str
    env : dict of str to str
        Variables to set besides the user's own.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """Return the command as one shell line.

        Examples
        --------
        >>> Launch(("srun", "./my app"), {"SLURM_HOSTFILE": "hosts"}).line()
        "SLURM_HOSTFILE=hosts srun './my app'"
        """
        words = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*words, shlex.join(self.argv)])


class Launcher(ABC):
    """A way to start ranks in order, applied to a user's command that starts them.

    Parameters
    ----------
    argv : sequence of str
        The user's command.
    env : mapping of str to str
        Its environment.
    major : int
        The first number of the launcher's version, 0 where it was not asked.

    Raises
    ------
    LaunchError
        Where a reordered launch would not be what the user means.

    Attributes
    ----------
    samples : tuple of str
        Commands as users write them, each of 4 ranks of ``./app`` on two nodes: what every
        launcher promises is tested with them.
    library : str
        The MPI library that it starts; '' for any.
    options : OptionTable
        What its options are. Roles that are read here: ``ranks``, ``nodes``, ``per_node``
        (ranks on each node), ``cores`` (of each rank), ``list`` (of nodes for the ranks),
        ``hosts`` and ``files`` (that name the job's hosts), ``overcommit``, and ``bind``,
        ``bind_gpus`` and ``map``, by which the user binds ranks.
    first : int
        Where its options begin: after its name, or its subcommand.
    format : str
        Format of the order file (`nidmap.rankmap.emit`).
    limit : Mapping or None
        How its MPI learns the nodes of its ranks, and how long that may get; None: no limit
        is known.
    on_nodes : bool
        True where the compute nodes read the order file, False where the
        launcher alone does.
    asks_order : bool
        True where the launcher takes nodes in an order of its own that only
        asking it would tell.
    keeps_list : bool
        True where a job's nodes are in the order of its list, False where
        the launcher sorts them.
    rank_variables : tuple of str
        Variables that hold a rank's number (its place in the launch), the
        first that is set.
    host : str
        What names a rank's node there, in a shell's words.
    variables : dict of str to str
        What a launch sets besides, ``{path}`` being its order file.
    host_variables : tuple of str
        Variables that name a file of the job's hosts.
    placing_variables : tuple of str
        How the names of variables begin by which the user places ranks.
    binder : str
        What binds its ranks to cores (`nidmap.rankmap.binding.bind`), '' for nothing that is known.
    parsed : Parsed
        What the command says.
    env, major
        See above.
    allocation : Allocation or None
        What the command runs in; None outside of one.
    bound : BoundOrder or None
        The order with what binds its ranks, where that was asked for.
    """

    samples: ClassVar[tuple[str, ...]] = ()
    library: ClassVar[str] = ""
    options: ClassVar[OptionTable]
    first: ClassVar[int] = 1
    format: ClassVar[str]
    limit: ClassVar[ProcessMapping | None]
    on_nodes: ClassVar[bool] = False
    asks_order: ClassVar[bool] = False
    keeps_list: ClassVar[bool] = False
    rank_variables: ClassVar[tuple[str, ...]] = ("PMI_RANK",)
    host: ClassVar[str] = "$(uname -n)"
    variables: ClassVar[dict[str, str]] = {}
    host_variables: ClassVar[tuple[str, ...]] = ()
    placing_variables: ClassVar[tuple[str, ...]] = ()
    binder: ClassVar[str] = ""
    allocation: Allocation | None = None
    bound: BoundOrder | None = None

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], major: int = 0) -> None:
        self.env, self.major = env, major
        self.parsed = self.options.parse(argv, self.first)
        self.check()

    def check(self) -> None:
        """Refuse commands whose reordered launch would not do what the user means.

        Raises
        ------
        LaunchError
        """
        for name, value in self.env.items():
            if value and self.placing_variables and name.startswith(self.placing_variables):
                raise LaunchError(f"{name} places ranks itself")

    def find_allocation(self) -> Allocation | None:
        """Return the hosts named in the command, else those of the surrounding job.

        Raises
        ------
        NidmapError
            Variables or host files that cannot be read.
        """
        from nidmap.rankmap.launch import allocation as allocations

        values = self.parsed.values
        if "hosts" in values:
            return allocations.from_hosts(values["hosts"], self.parsed.words("hosts"))
        path = values.get("files") or self.first_set(self.host_variables)[1]
        if path:
            from nidmap.placement.support import reading

            return allocations.from_hosts(reading.load(path), path)
        return allocations.allocation(self.env)

    def first_set(self, variables: Sequence[str]) -> tuple[str, str]:
        """Return name and value of the first variable set; two empty strings if none is."""
        return next(((name, self.env[name]) for name in variables if self.env.get(name)), ("", ""))

    def cores(self) -> int:
        """Return how many cores the command gives each rank."""
        return self.parsed.number("cores") or 1

    def per_node(self) -> int | None:
        """Return how many ranks per node the command requests; None if it does not say."""
        return self.parsed.number("per_node")

    def asked_remarks(self, seconds: float) -> list[str]:
        """Return remarks on the command that require asking the system.

        The site has this many seconds to answer.
        """
        return []

    def mapping(self) -> ProcessMapping | None:
        """Return how MPI learns each rank's node; None if that has no size limit."""
        return self.limit

    def text(self, order: Placement) -> str:
        """Return the text of the order file, for nodes in the launcher's order."""
        from nidmap.rankmap import emit

        return emit.emit(order, self.format, "given")

    def rank_nodes(self, laid: Placement) -> list[str]:
        """Return the node of each of the launcher's ranks, for nodes in its order."""
        nodes: list[str] = laid.host_of_rank.tolist()
        return nodes

    def ranks(self, nodes: int) -> int:
        """Return how many ranks the command starts on this many nodes.

        Raises
        ------
        LaunchError
            Where that is not clear.
        """
        ranks, per_node = self.parsed.number("ranks"), self.per_node()
        if per_node and not ranks:
            return per_node * (self.parsed.number("nodes") or nodes)
        ranks = ranks or (self.allocation.ranks if self.allocation else None)
        if ranks is None:
            raise LaunchError("the number of ranks is not known", "pass -n to the launcher")
        return ranks

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return how many of `ranks` ranks the command puts on each node.

        Here they are filled in order. The nodes are as the launcher takes them: in the job's
        order, where it has them all, else in that of the list (`keeps_list`) or sorted. A
        node that gets none is not part of the step.

        Raises
        ------
        LaunchError
            Where that is not clear.
        """
        from nidmap.rankmap.launch import allocation as allocations

        per_node, job = self.per_node(), self.allocation
        if per_node:
            import numpy as np

            return allocations.fill_nodes(ranks, np.full(nodes, per_node))
        if job is None or job.tasks is None or len(job.tasks) != nodes:
            raise allocations.unclear_counts(ranks, nodes)
        return allocations.fill_nodes(ranks, job.tasks)

    def own_nodes(self, ranks: int) -> Ints | None:
        """Return the node of each rank if the command places them itself; None: node by node.

        As positions in the allocation's list.
        """
        return None

    def bind(self, order: Placement, pattern: Pattern) -> Placement:
        """Arrange an order within its nodes, and return it with a launch that binds its ranks.

        Raises
        ------
        LaunchError
            The command binds its ranks itself, or nothing is known that binds them.
        UsageError
            What is inside the nodes is not known.
        """
        from nidmap.rankmap import binding

        for role in ("bind", "bind_gpus", "map"):
            if role in self.parsed.values:
                raise LaunchError(
                    f"the command binds ranks itself ({self.parsed.words(role)})", "drop --bind"
                )
        if not self.binder:
            library = self.library or self.parsed.argv[0]
            raise LaunchError(f"nidmap does not know how {library} binds ranks", "drop --bind")
        cpus = None if self.allocation is None else self.allocation.cpus
        if cpus is not None and order.machine is not None:
            cores = int(order.machine.cores[order.rows].max())
            if int(cpus.min()) < cores:
                problem = f"the job has only {cpus.min()} of a node's {cores} cores"
                raise LaunchError(problem, "drop --bind")
        form = "openmpi" if self.binder == "openmpi" else self.format
        self.bound = binding.bind(order, pattern, self.binder, form)
        return self.bound.order

    @abstractmethod
    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command that starts the ranks with the order file at `path`.

        Raises
        ------
        LaunchError
            Where this launcher cannot lay the ranks out so.
        """

    def command(self, words: Sequence[str], path: str, **roles: str | int | None) -> Launch:
        """Return the user's command with words added after the launcher's name, and variables.

        Parameters
        ----------
        words : sequence of str
            What goes right after the launcher's name.
        path : str
            The order file.
        **roles : str, int or None
            What options are to say: the user's stay where they say it already, and go where
            they say something else, or for None.
        """
        values = self.parsed.values
        words = [*words]
        gone = [name for name, value in roles.items() if value is None]
        for name, value in roles.items():
            if value is not None and values.get(name) != str(value):
                gone.append(name)
                words += self.options.written(name, value)
        longest = max(words, key=len, default="")
        if len(longest) > _LONGEST:
            what = f"{longest[:20]}… is too long for a command line"
            raise LaunchError(what, "srun and Open MPI read an order from a file")
        argv, first = self.parsed.without(*gone), self.first
        env = {name: text.format(path=path) for name, text in self.variables.items()}
        more = self.bound.options if self.bound else ()
        env |= self.bound.variables if self.bound else {}
        return Launch((*argv[:first], *words, *more, *argv[first:]), env)


def is_mpiexec(program: str) -> bool:
    """Tell whether a program has a name such as mpiexec, which every MPI library uses."""
    return _MPIEXEC.fullmatch(os.path.basename(program)) is not None


def variants(program: str) -> dict[str, type[Launcher]]:
    """Return a program's launcher classes by MPI library."""
    name = os.path.basename(program)
    launchers = _launchers.find("mpiexec" if is_mpiexec(name) else name)
    kinds: list[type[Launcher]]
    if isinstance(launchers, ModuleType):
        kinds = [getattr(launchers, kind) for kind in launchers.__all__]
    else:
        kinds = [launchers]
    return {kind.library: kind for kind in kinds}


def find(program: str, mpi: str) -> type[Launcher]:
    """Return the launcher class for a program (name or path) and an MPI library."""
    kinds = variants(program)
    kind = kinds.get(mpi) or kinds.get("")
    if kind is None:
        raise LaunchError(f"nidmap does not know {mpi}'s {program}")
    return kind
