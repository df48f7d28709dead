"""From a user's command line to the one that starts its ranks in order.

`prepare` either returns exactly that, or raises an error that says what is
unclear; it never guesses, and it changes how ranks are placed, not how many
of them sit on a node. What to do with an error is the caller's choice
(``nidmap run`` then starts the command as it is).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import LaunchError, NidmapError, UsageError, printable
from rankmap import progress
from rankmap.launch import CRAY, OTHER, Launch, find, is_mpiexec
from rankmap.launch.ask import flavour, probe, said_places
from rankmap.launch.cray import seems_cray
from rankmap.launch.orderfile import discard, folders, store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine
    from rankmap.launch import Launcher
    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["Prepared", "Wish", "places", "prepare"]

#: Networks on which Cray MPICH is the site's own library.
_CRAY_FABRICS = ("aries", "gemini", "slingshot")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked ``nidmap run`` for.

    Attributes
    ----------
    pattern : str
        '' where none was given.
    strategy : str
    nodes, ppn : str or None
        As ``--nodes`` and ``--ppn`` take them; None: what the allocation and the command say.
    host_file : bool
        True where `nodes` is the text of a host file, in which a node may repeat.
    mpi : str
        ``cray-mpich``, ``other``, or ``auto``: by the machine's network, else by the
        modules loaded.
    launcher_order : str or None
        ``sorted`` or ``given``; None: not stated.
    folder : str or None
        Directory for the order file.
    dry : bool
        True where nothing will be started, nor asked.
    patience : float
        Seconds that a launcher may take to say where it puts ranks; 0: ten.
    """

    pattern: str = ""
    strategy: str = "row-major"
    nodes: str | None = None
    ppn: str | None = None
    host_file: bool = False
    mpi: str = "auto"
    launcher_order: str | None = None
    folder: str | None = None
    dry: bool = False
    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch in order.

    Attributes
    ----------
    launch : Launch
    order : Order
    path : str
        The order file, already written.
    probe : Launch
        The same launch of a program that prints where each rank is
        (`rankmap.launch.ask`).
    places : tuple of str
        Node that each rank of `probe` must say: the plan, by the launcher's own numbers.
    remarks : tuple of str
        What the user should know of it.
    laid : Order
        The same order on the nodes as the launcher takes them.
    form : str
        Format of the order file.
    variables : tuple of str
        Variables that hold a rank's number, the first that is set.
    """

    launch: Launch
    order: Order
    path: str
    probe: Launch
    places: tuple[str, ...]
    remarks: tuple[str, ...]
    laid: Order
    form: str
    variables: tuple[str, ...]


def prepare(
    command: Sequence[str], wish: Wish, env: Mapping[str, str], machine: Machine | None = None
) -> Prepared:
    """Return the launch that runs `command` with its ranks in the wished order.

    Parameters
    ----------
    command : sequence of str
        The launcher, its options, the program.
    wish : Wish
    env : mapping of str to str
        The environment of the job.
    machine : Machine or None
        Where the nodes belong; None is enough where their names are.

    Raises
    ------
    NidmapError
        What is missing, contradictory or not known; no file is left behind.
    """
    from rankmap.order import arrange

    if not wish.pattern:
        raise UsageError("no --pattern given")
    how = _launcher(command[0], wish, machine, env)
    step = how.read(command, env)
    job = _named(how.allocation(step, env), machine)
    slots = _slots(how, step, wish, job, machine)
    progress.step()
    made = arrange(slots, wish.pattern, wish.strategy)
    progress.step()
    laid = _laid(how, step, made, wish, job, env)
    text = how.text(laid, "given", step)
    path = store(text, how.form, job.job if job else "", folders(how.on_nodes, wish.folder))
    try:
        launch = how.launch(step, laid, path, job)
        remarks = _remarks(how, step, wish, made, job, env)
        there = places(how.form, laid)
        asking = _probe(how, step, launch)
        return Prepared(
            launch, made, path, asking, there, remarks, laid, how.form, how.rank_variables
        )
    except BaseException:
        discard(path)
        raise


def _launcher(
    program: str, wish: Wish, machine: Machine | None, env: Mapping[str, str]
) -> Launcher:
    """Return the launcher of the command; an mpiexec is asked which MPI it belongs to."""
    if not is_mpiexec(program):
        return find(program, _library(wish.mpi, machine, env))
    if wish.mpi == CRAY:
        return find(program, CRAY)
    mpi, version = flavour(program, env)
    stated = mpi if wish.mpi in ("auto", OTHER) else wish.mpi
    if stated != mpi:
        raise LaunchError(f"{printable(program, 40)} belongs to {mpi}, not to {stated}")
    how = find(program, mpi)
    how.version = version
    return how


def _library(mpi: str, machine: Machine | None, env: Mapping[str, str]) -> str:
    """Return which MPI library to launch for."""
    if mpi != "auto":
        return mpi
    if machine is not None and machine.topology.fabric:
        return CRAY if machine.topology.fabric in _CRAY_FABRICS else OTHER
    return CRAY if seems_cray(env) else OTHER


def _named(job: Allocation | None, machine: Machine | None) -> Allocation | None:
    """Return an allocation whose nodes go by the machine's names, not NIDs or domain names."""
    if job is None or machine is None or not len(job.nodes):
        return job
    from placement.lookup import rows_of
    from placement.nodelist import NodeList

    if job.nodes[0].isdigit():
        rows = rows_of(machine, ",".join(job.nodes))
        return replace(job, nodes=NodeList(machine.names[rows].tolist()))
    if "." in job.nodes[0] and job.nodes[0] not in set(machine.names.tolist()):
        return replace(job, nodes=NodeList([name.partition(".")[0] for name in job.nodes]))
    return job


def _slots(
    how: Launcher, step: Parsed, wish: Wish, job: Allocation | None, machine: Machine | None
) -> Slots:
    """Return the slots of the step: which nodes, and how many ranks on each."""
    from rankmap.slots import slots_of

    nodes = wish.nodes or how.nodes(step) or (job.nodes if job else "")
    if not nodes:
        raise LaunchError("no allocation", "SLURM_JOB_NODELIST is not set and no --nodes given")
    slots = slots_of(machine, nodes, wish.ppn, repeats=wish.host_file)
    _inside(slots, job)
    stated = wish.ppn is not None or slots.ppn != 1
    if stated and how.ranks_option not in step.values and not (job and job.ranks):
        return _roomy(how, step, slots, job)
    ranks = how.ranks(step, len(slots.names), job)
    if not stated:
        slots = _filled(slots, _counts(how, step, ranks, slots, job))
    if ranks != len(slots):
        raise LaunchError(f"{ranks} ranks to start, but {len(slots)} slots ({slots.words()})")
    return _roomy(how, step, slots, job)


def _counts(
    how: Launcher, step: Parsed, ranks: int, slots: Slots, job: Allocation | None
) -> NDArray[np.int64]:
    """Return the launcher's own ranks a node, for the nodes as they are listed."""
    from rankmap.permutation import inverse

    many = len(slots.names)
    counts = how.counts(step, ranks, many, job)
    if job is not None and set(job.nodes) == set(slots.names.tolist()):
        own = dict(zip(job.nodes, counts.tolist(), strict=True))
        return np.array([own[name] for name in slots.names.tolist()], dtype=np.int64)
    return counts if how.keeps_list else counts[inverse(slots.sorting())]


def _filled(slots: Slots, counts: NDArray[np.int64]) -> Slots:
    """Return the slots with these counts, without the nodes that get none."""
    used = np.flatnonzero(counts)
    return replace(slots.take(used), counts=counts[used])


def _roomy(how: Launcher, step: Parsed, slots: Slots, job: Allocation | None) -> Slots:
    """Refuse ranks of more cores than the job has on a node."""
    cores = how.cores(step)
    if job is None or job.cpus is None or cores == 1 or "overcommit" in step.values:
        return slots
    have = dict(zip(job.nodes, job.cpus.tolist(), strict=True))
    for name, count in zip(slots.names.tolist(), slots.counts.tolist(), strict=True):
        if count * cores > have.get(name, 0):
            raise LaunchError(
                f"{count} ranks of {cores} CPUs on {name}, which has {have.get(name, 0)}"
            )
    return slots


def _inside(slots: Slots, job: Allocation | None) -> None:
    """Refuse nodes that the job does not have."""
    if job is None:
        return
    outside = set(slots.names.tolist()).difference(job.nodes)
    if outside:
        raise LaunchError(f"node {printable(min(outside), 40)} is not in the allocation")


def _laid(
    how: Launcher,
    step: Parsed,
    made: Order,
    wish: Wish,
    job: Allocation | None,
    env: Mapping[str, str],
) -> Order:
    """Return the order on the nodes as the launcher takes them."""
    if wish.launcher_order:
        return made.sorted() if wish.launcher_order == "sorted" else made
    if how.asks_order and not wish.dry:
        return made.onto(_asked(how, step, made, wish, job, env))
    return made.sorted()


def _asked(
    how: Launcher,
    step: Parsed,
    made: Order,
    wish: Wish,
    job: Allocation | None,
    env: Mapping[str, str],
) -> NDArray[np.int64]:
    """Return the positions of the nodes in the order that the launcher itself says."""
    try:
        argv = _probe(how, step, how.launch(step, made.sorted(), "", job)).argv
        said = said_places(Launch(argv), env, len(made), wish.patience or 10.0)
    except NidmapError as error:
        raise LaunchError(
            f"this launcher takes nodes in an order of its own, and asked for it: {error.message}",
            "say --launcher-order sorted or given, or raise --patience",
        ) from None
    position = {_short(name): k for k, name in enumerate(made.on.names.tolist())}
    node = [position.get(_short(host), -1) for host in said]
    order = list(dict.fromkeys(node))
    if -1 in order or len(order) != len(position):
        raise LaunchError("the launcher puts ranks on other nodes than were planned")
    if node != np.repeat(order, made.on.counts[order]).tolist():
        raise LaunchError("the launcher does not put ranks in blocks on its nodes")
    return np.array(order, dtype=np.int64)


def _short(name: str) -> str:
    return name.partition(".")[0]


def _probe(how: Launcher, step: Parsed, launch: Launch) -> Launch:
    """Return the same launch with a program that prints where each rank is."""
    program = len(step.argv) - step.program
    before = launch.argv[: len(launch.argv) - program]
    return replace(launch, argv=(*before, *probe(how.rank_variables, how.host)))


def places(form: str, laid: Order) -> tuple[str, ...]:
    """Return the node of each rank as the launcher numbers them.

    Cray MPICH renumbers ranks itself: to the launcher, slot s is rank s.

    Parameters
    ----------
    form : str
        Format of the order file.
    laid : Order
        On the nodes as the launcher takes them.
    """
    from rankmap.emit import find as format_of

    if getattr(format_of(form), "NODE_ORDER", "given") == "launcher":
        return tuple(laid.on.names[laid.on.node].tolist())
    return tuple(laid.hosts.tolist())


def _remarks(
    how: Launcher,
    step: Parsed,
    wish: Wish,
    made: Order,
    job: Allocation | None,
    env: Mapping[str, str],
) -> tuple[str, ...]:
    """Return what the user should know of the launch."""
    found = []
    if how.asks_order and wish.dry and not wish.launcher_order:
        found.append("computed for nodes in NID order: a real run asks the launcher for its own")
    loose = how.unbound(step, env)
    if loose:
        found.append(f"ranks are not bound to cores ({loose}): the order holds while they stay put")
    if made.strategy == "auto: row-major" and made.remark:
        found.append(made.remark)
    if job is not None and wish.nodes is None and len(made.on.names) < len(job.nodes):
        first = f"{len(made.on.names)} of the job's {len(job.nodes)} nodes"
        found.append(f"the step is put on the first {first}; --nodes names others")
    return tuple(found)
