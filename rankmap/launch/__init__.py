"""Launchers: the command line that starts a job's ranks in an order, one class a way.

A launcher reads the user's own command line, says how many ranks it would put
on each node (`Launcher.counts`), and returns what to run instead
(`Launcher.launch`): arguments and variables. It is registered by the
decorator `launcher` under its program's name and, where that matters, the MPI
library; other distributions add classes under the entry point group
``nidmap.launchers``. Nothing is run here; who wants to know what a launcher
does asks it (`rankmap.launch.queries`).
"""

from __future__ import annotations

import os
import re
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from placement.support.array_types import Ints
    from rankmap.binding import BoundOrder
    from rankmap.emit.process_mapping import Mapping as ProcessMapping
    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import OptionTable, Parsed
    from rankmap.order import Order
    from rankmap.pattern import Pattern

__all__ = [
    "CRAY",
    "INTEL",
    "LAUNCH",
    "MPICH",
    "OPENMPI",
    "ORDER_OF_CRAY",
    "OTHER",
    "Launch",
    "Launcher",
    "even_ranks",
    "find",
    "is_mpiexec",
    "launcher",
]

#: Which MPI library the ranks use, as far as a launch depends on it.
CRAY, OTHER = "cray-mpich", "other"
MPICH, INTEL, OPENMPI = "mpich", "intel", "openmpi"

#: Variable in which ranks find the order file that they were launched with; nobody else reads it.
LAUNCH = "NIDMAP_LAUNCH"

#: Where each bundled launcher lives: imported only when it is asked for.
BUNDLED = ("aprun", "flux", "mpiexec", "srun")

#: What the starters of MPI libraries are called; a distribution may add whose they are
#: (``mpiexec.mpich``). The library is asked from the executable, not read from its name.
MPIEXECS = ("mpiexec", "mpirun", "orterun", "prterun")
_MPIEXEC = re.compile(rf"(?:{'|'.join(MPIEXECS)})(?:[.-][A-Za-z0-9._-]+)?", re.ASCII)

#: Makes Cray MPICH read its order from a file. It is named, so that a MPICH_RANK_ORDER of the
#: user's own in the working directory is neither read nor touched.
ORDER_OF_CRAY = {"MPICH_RANK_REORDER_METHOD": "3", "MPICH_RANK_REORDER_FILE": "{path}"}

_registered: dict[tuple[str, str], type[Launcher]] = {}


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run.

    Attributes
    ----------
    argv : tuple of str
    env : dict of str to str
        Variables to set besides the user's own.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """Return the command as one line for a shell.

        Examples
        --------
        >>> Launch(("srun", "./my app"), {"SLURM_HOSTFILE": "hosts"}).line()
        "SLURM_HOSTFILE=hosts srun './my app'"
        """
        words = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*words, shlex.join(self.argv)])


class Launcher(ABC):
    """One way to start ranks in an order, and a user's command that starts them.

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
    options : OptionTable
        What is read of its command line.
    first : int
        Where its options begin: behind its name, or its subcommand.
    form : str
        Format of the order file (`rankmap.emit`).
    ranks_option, cores_option, list_option : str
        Options that give the number of ranks, the cores of each, and a list of nodes.
    per_node_options : tuple of str
        Options that say how many ranks a node gets.
    on_nodes : bool
        True where the compute nodes read the order file, False where the
        launcher alone does.
    asks_order : bool
        True where the launcher takes nodes in an order of its own that only
        asking it would tell.
    keeps_list : bool
        True where a job's nodes stand in the order of its list, False where
        the launcher sorts them.
    rank_variables : tuple of str
        Variables that hold a rank's number (its place in the launch), the
        first that is set.
    host : str
        What names a rank's node there, in a shell's words.
    variables : dict of str to str
        What a launch sets besides, ``{path}`` being its order file.
    loose : (str, str, str)
        The option and its value that leave ranks unbound, and both as a user writes them.
    binder : str
        What binds its ranks to cores (`rankmap.binding.bind`), '' for nothing that is known.
    binding_options : tuple of str
        Options by which the user binds them.
    step : Parsed
        What the command says.
    env, major
        See above.
    allocation : Allocation or None
        What the command runs in; None outside of one.
    bound : BoundOrder or None
        The order with what binds its ranks, where that was asked for.
    """

    options: ClassVar[OptionTable]
    first: ClassVar[int] = 1
    form: ClassVar[str]
    ranks_option: ClassVar[str]
    cores_option: ClassVar[str] = ""
    list_option: ClassVar[str] = ""
    per_node_options: ClassVar[tuple[str, ...]] = ()
    on_nodes: ClassVar[bool] = True
    asks_order: ClassVar[bool] = False
    keeps_list: ClassVar[bool] = False
    rank_variables: ClassVar[tuple[str, ...]] = ("PMI_RANK",)
    host: ClassVar[str] = "$(uname -n)"
    variables: ClassVar[dict[str, str]] = {}
    loose: ClassVar[tuple[str, str, str]] = ("", "none", "")
    binder: ClassVar[str] = ""
    binding_options: ClassVar[tuple[str, ...]] = ("cpu-bind",)
    allocation: Allocation | None = None
    bound: BoundOrder | None = None

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], major: int = 0) -> None:
        self.env, self.major = env, major
        self.step = self.options.parse(argv, self.first)
        self.check()

    def check(self) -> None:
        """Refuse a command whose reordered launch would not be what the user means.

        So where the user has an order for Cray MPICH already; its method 1 is the
        default order.

        Raises
        ------
        LaunchError
        """
        if self.form == "mpich":
            method = self.env.get("MPICH_RANK_REORDER_METHOD", "1").strip()
            if method not in ("", "1"):
                raise LaunchError(
                    f"MPICH_RANK_REORDER_METHOD={printable(method, 20)} is set already"
                )
            if self.env.get("MPICH_RANK_REORDER_FILE"):
                raise LaunchError("MPICH_RANK_REORDER_FILE is set already")

    def find_allocation(self) -> Allocation | None:
        """Return the allocation that the command runs in; None outside of one.

        Raises
        ------
        NidmapError
            Variables or host files that cannot be read.
        """
        from rankmap.launch.allocation import allocation

        return allocation(self.env)

    def cores(self) -> int:
        """Return how many cores the command gives each rank."""
        return self.step.number(self.cores_option) or 1

    def per_node(self) -> int | None:
        """Return how many ranks the command wants on each node, None where it does not say."""
        return next(filter(None, map(self.step.number, self.per_node_options)), None)

    def unbound(self) -> str:
        """Return what leaves the ranks of this command unbound; '' where they are bound."""
        option, value, words = self.loose
        return words if self.step.values.get(option) == value else ""

    def asked_remarks(self, seconds: float) -> list[str]:
        """Return what the user should know of the command that only asking the site tells.

        The site has so many seconds to answer.
        """
        return []

    def mapping(self) -> ProcessMapping | None:
        """Return how MPI learns the nodes of its ranks; None where that has no limit."""
        from rankmap.emit.process_mapping import MAPPINGS

        return MAPPINGS.get(self.form)

    def text(self, order: Order) -> str:
        """Return what stands in the order file, for nodes as the launcher takes them."""
        from rankmap.emit import emit

        return emit(order, self.form, "given")

    def ranks(self, nodes: int) -> int:
        """Return how many ranks this command starts on so many nodes.

        Raises
        ------
        LaunchError
            Where that is not clear.
        """
        given, per_node = self.step.number(self.ranks_option), self.per_node()
        if per_node and not given:
            return per_node * (self.step.number("nodes") or nodes)
        given = given or (self.allocation.ranks if self.allocation else None)
        if given is None:
            raise LaunchError("how many ranks to start is not clear", "give -n to the launcher")
        return given

    @abstractmethod
    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return how many of `ranks` ranks this command puts on each of its nodes.

        The nodes stand as the launcher takes them: in the job's order, where
        it has them all, else in that of the list (`keeps_list`) or sorted. A
        node that gets none is not part of the step.

        Raises
        ------
        LaunchError
            Where that is not clear.
        """

    def bind(self, order: Order, pattern: Pattern) -> Order:
        """Return an order arranged inside its nodes, and bind its ranks in the launch.

        Raises
        ------
        LaunchError
            The command binds its ranks itself, or nothing is known that binds them.
        UsageError
            What is inside the nodes is not known.
        """
        from rankmap.binding import bind

        own = next((name for name in self.binding_options if name in self.step.values), "")
        if own:
            raise LaunchError(f"ranks are to be bound by --{own} already", "leave --bind out")
        if not self.binder:
            raise LaunchError(f"nothing is known that binds ranks of {self.step.argv[0]}")
        self.bound = bind(order, pattern, self.binder, self.binder_form)
        return self.bound.order

    @property
    def binder_form(self) -> str:
        """The format of the order file where ranks are bound: a rankfile for Open MPI."""
        return "openmpi" if self.binder == "openmpi" else self.form

    @abstractmethod
    def launch(self, order: Order, path: str) -> Launch:
        """Return the command that starts the ranks with the order file at `path`.

        Raises
        ------
        LaunchError
            Where this launcher cannot lay the ranks out so.
        """

    def insert(self, step: Parsed, words: Sequence[str], path: str) -> Launch:
        """Return a launch with words right behind the launcher's own name, and its variables.

        `step` is the user's command, without what the words say instead.
        """
        argv, first = step.argv, self.first
        env = {name: text.format(path=path) for name, text in self.variables.items()}
        more = self.known_options(self.bound.options) if self.bound else ()
        env |= self.bound.variables if self.bound else {}
        return Launch((*argv[:first], *words, *more, *argv[first:]), env)

    def known_options(self, options: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the options that bind ranks which this launcher takes."""
        return options


def even_ranks(order: Order) -> int:
    """Return the ranks on each node but the last, which may have fewer: what ``-N`` can say.

    Raises
    ------
    LaunchError
        Where nodes have other numbers of ranks.
    """
    counts = order.on.counts
    per_node = int(counts[0])
    if (counts[:-1] != per_node).any() or counts[-1] > per_node:
        raise LaunchError(f"one number of ranks a node does not give {order.on.words()}")
    return per_node


def launcher(*keys: tuple[str, str]) -> Callable[[type[Launcher]], type[Launcher]]:
    """Register the decorated class for (program, MPI library) pairs."""

    def register(made: type[Launcher]) -> type[Launcher]:
        _registered.update(dict.fromkeys(keys, made))
        return made

    return register


def is_mpiexec(program: str) -> bool:
    """Tell whether a program is one of those that every MPI library brings of its own.

    Examples
    --------
    >>> is_mpiexec("/opt/openmpi/bin/mpirun"), is_mpiexec("mpiexec.mpich"), is_mpiexec("srun")
    (True, True, False)
    """
    return _MPIEXEC.fullmatch(os.path.basename(program)) is not None


def find(program: str, mpi: str) -> type[Launcher]:
    """Return the launcher's class for a program (a path will do) and an MPI library.

    Raises
    ------
    LaunchError
        Where there is none; the message names those there are.
    """
    from importlib import import_module, metadata

    name = os.path.basename(program)
    own = is_mpiexec(name)
    key = ("mpiexec" if own else name, mpi if own or mpi == CRAY else OTHER)
    if key[0] in BUNDLED:
        import_module(f"rankmap.launch.{key[0]}")
    elif key not in _registered:
        for entry in metadata.entry_points(group="nidmap.launchers", name=key[0]):
            entry.load()
    if key not in _registered:
        others = {entry.name for entry in metadata.entry_points(group="nidmap.launchers")}
        raise LaunchError(
            f"'{printable(name, 40)}' is not a launcher that is known"
            + (f" for {printable(mpi, 20)}" if own else ""),
            f"there are {', '.join(sorted({*BUNDLED, *MPIEXECS, *others}))}",
        )
    return _registered[key]
