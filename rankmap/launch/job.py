"""From a user's command line to the one that starts its ranks in order.

`read_job` says what a command would start, `JobLaunch.prepared` what starts it in
order. Both raise an error that says what is unclear; nothing is guessed, and
how ranks are placed changes, not how many of them sit on a node. What to do
with an error is the caller's choice (``nidmap run`` then starts the command as
it is).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import LaunchError, NidmapError, UsageError, printable
from placement.lookup import rows_of
from placement.nodelist import NodeList
from placement.options import lay_figures
from rankmap import progress
from rankmap.launch import CRAY, OTHER, Launch, Launcher, find, is_mpiexec
from rankmap.launch.expectation import Expectation, expectation
from rankmap.launch.launch_folder import discard_launch, order_folders, store_order
from rankmap.launch.queries import mpi_library, plain_host, query_rank_nodes, rank_printer
from rankmap.order_file import format_named, read_order_file
from rankmap.orders import arrange
from rankmap.pattern import parse_pattern
from rankmap.permutation import inverse
from rankmap.place_ranks import place_ranks
from rankmap.predict.job import Job
from rankmap.search.by_strategy import order_by_strategy
from rankmap.short_orders import fit_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placement.machine import Machine
    from placement.support.array_types import Ints
    from rankmap.launch.allocation import Allocation
    from rankmap.placement import Placement

__all__ = ["JobLaunch", "Prepared", "RunRequest", "read_job"]

#: Networks on which Cray MPICH is the site's own library.
_CRAY_FABRICS = ("aries", "gemini", "slingshot")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user asked ``nidmap run`` for.

    Attributes
    ----------
    job : Job
        What it sends (its pattern '' where none was given), and the ranks on each node; None:
        what the allocation and the command say.
    strategy : str
    nodes : str or None
        As ``--nodes`` takes them; None: what the allocation and the command say.
    host_file : bool
        True where `nodes` is the text of a host file, in which a node may repeat.
    mpi : str
        ``cray-mpich``, ``other``, or ``auto``: by the machine's network, else by the
        modules loaded.
    launcher_order : str or None
        ``sorted`` or ``given``; None: not stated.
    order_dir : str or None
        Directory for the order file.
    dry : bool
        True where nothing will be started, nor asked.
    patience : float
        Seconds that a launcher may take to say where it puts ranks; 0: ten.
    seconds : float
        Of processor time that choosing an order may take.
    mapping_limit : str or None
        As ``--mapping-limit`` gives it; None: the library's own.
    order_file : str or None
        A file with the order, of the format that its name states.
    bind : bool
        Arrange ranks inside the nodes too, and bind them to their cores.
    """

    job: Job
    strategy: str = "row-major"
    nodes: str | None = None
    host_file: bool = False
    mpi: str = "auto"
    launcher_order: str | None = None
    order_dir: str | None = None
    dry: bool = False
    patience: float = 0.0
    seconds: float = math.inf
    mapping_limit: str | None = None
    order_file: str | None = None
    bind: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch in order.

    Attributes
    ----------
    launch : Launch
    order : Placement
    path : str
        The order file, already written.
    probe : Launch
        The same launch of a program that prints where each rank is
        (`rankmap.launch.queries`).
    rank_nodes : list of str
        Node that each rank of `probe` must say: the plan, by the launcher's own numbers.
    remarks : list of str
        What the user should know of it.
    laid : Placement
        The same order on the nodes as the launcher takes them.
    """

    launch: Launch
    order: Placement
    path: str
    probe: Launch
    rank_nodes: list[str]
    remarks: list[str]
    laid: Placement


def read_job(
    command: Sequence[str],
    request: RunRequest,
    env: Mapping[str, str],
    machine: Machine | None = None,
) -> JobLaunch:
    """Return what a command would start, before any order is thought of.

    Parameters
    ----------
    command : sequence of str
        The launcher, its options, the program.
    request : RunRequest
    env : mapping of str to str
        The environment of the job.
    machine : Machine or None
        Where the nodes belong; None is enough where their names are.

    Raises
    ------
    NidmapError
        What is missing, contradictory or not known.
    """
    if not request.job.pattern and request.order_file is None:
        raise UsageError("no --pattern given")
    how, library = _read_command(command, request.mpi, machine, env)
    if machine is not None and library and not machine.topology.parameters.get("mpi"):
        machine = lay_figures(machine, {"mpi": library})
    how.allocation = _name_nodes(how.find_allocation(), machine)
    return JobLaunch(how, request, machine)


def _read_command(
    command: Sequence[str], mpi: str, machine: Machine | None, env: Mapping[str, str]
) -> tuple[Launcher, str]:
    """Return the launcher of a command, and the MPI that the ranks surely have, '' for none.

    An mpiexec is asked which MPI it belongs to; that of other launchers goes with the
    machine's network, else with the modules.
    """
    program, stated = command[0], mpi not in ("auto", OTHER)
    if not is_mpiexec(program):
        if mpi == "auto" and machine is not None and machine.topology.fabric:
            mpi = CRAY if machine.topology.fabric in _CRAY_FABRICS else OTHER
        elif mpi == "auto":
            cray = env.get("CRAY_MPICH_VERSION") or env.get("CRAY_MPICH_DIR")
            mpi = CRAY if cray else OTHER
        return find(program, mpi)(command, env), mpi if stated else ""
    if mpi == CRAY:
        return find(program, CRAY)(command, env), CRAY
    library = mpi_library(program, env)
    if stated and mpi != library.name:
        raise LaunchError(f"{printable(program, 40)} belongs to {library.name}, not to {mpi}")
    return find(program, library.name)(command, env, library.major), library.name


def _name_nodes(allocation: Allocation | None, machine: Machine | None) -> Allocation | None:
    """Return an allocation whose nodes go by the machine's names, not NIDs or domain names."""
    if allocation is None or machine is None or not len(allocation.nodes):
        return allocation
    nodes = allocation.nodes
    if nodes[0].isdigit():
        rows = rows_of(machine, ",".join(nodes))
        return replace(allocation, nodes=NodeList(machine.names[rows].tolist()))
    if "." in nodes[0] and nodes[0] not in set(machine.names.tolist()):
        return replace(allocation, nodes=NodeList([plain_host(name) for name in nodes]))
    return allocation


@dataclass(slots=True)
class JobLaunch:
    """A launcher's command in its allocation, and what was asked for it.

    Attributes
    ----------
    how : Launcher
        With the command and its allocation.
    request : RunRequest
    machine : Machine or None
    placement : Placement
        Which nodes, and how many ranks on each, rank r on slot r.
    """

    how: Launcher
    request: RunRequest
    machine: Machine | None
    placement: Placement = field(init=False)

    def __post_init__(self) -> None:
        """Find the nodes and their ranks."""
        self.placement = self._own_placement()

    def ordered(self, strategy: str = "") -> Placement:
        """Return the order of a file, or a new one, by another strategy than was asked for."""
        request, job = self.request, self.request.job
        if request.order_file is not None:
            if request.strategy != "auto":
                raise UsageError("give either --order or --strategy")
            way = request.launcher_order or "sorted"
            order = read_order_file(request.order_file, None, self.placement, way)
            return order.with_origin(pattern=str(job.pattern or order.origin.pattern))
        if strategy:
            return arrange(self.placement, job.pattern, strategy)
        return order_by_strategy(self.placement, job, request.strategy, request.seconds)

    def expected(self, order: Placement) -> Expectation:
        """Return what is expected of an order over the launcher's own."""
        return expectation(order, self._sent(order), self.how.keeps_list)

    def _sent(self, order: Placement) -> Job:
        """Return what the job sends: of what an order is for, where nothing says."""
        job = self.request.job
        return job if job.pattern else replace(job, pattern=order.origin.pattern)

    def asked_remarks(self) -> list[str]:
        """Return what the user should know of the command that only asking the site tells."""
        return self.how.asked_remarks(self.request.patience or 10.0)

    def prepared(self, order: Placement | None = None) -> Prepared:
        """Return the launch of an order, its file written; None: of a new one.

        Raises
        ------
        NidmapError
            Where this launcher cannot lay the ranks out so; no file is left behind.
        """
        order = order or self.ordered()
        progress.step()
        how, request, job = self.how, self.request, self.how.allocation
        free = self.lay(order)
        laid, remark = fit_order(free, how.mapping(), request.mapping_limit, self._sent(order))
        remarks = self.remarks(order) + ([remark] if laid != free else [])
        if request.bind:
            laid = self._bound(laid)
        if laid != free:  # the same on the nodes as they are listed
            place = {name: k for k, name in enumerate(laid.names.tolist())}
            order = laid.renumbered(np.array([place[name] for name in order.names.tolist()]))
        folders = order_folders(how.on_nodes, request.order_dir)
        path = store_order(how.text(laid), how.format, job.job if job else "", folders)
        try:
            launch = how.launch(laid, path)
            remarks += [how.bound.remark] if how.bound else []
            nodes = how.rank_nodes(laid)
            return Prepared(launch, order, path, self.probe(launch), nodes, remarks, laid)
        except BaseException:
            discard_launch(path)
            raise

    def _bound(self, laid: Placement) -> Placement:
        """Return the order arranged inside its nodes, and have the launcher bind its ranks."""
        job = self.how.allocation
        if job is not None and job.cpus is not None and laid.machine is not None:
            cores = int(laid.machine.cores[laid.rows].max())
            if int(job.cpus.min()) < cores:
                raise LaunchError(
                    f"the job has only {job.cpus.min()} of a node's {cores} cores",
                    "drop --bind",
                )
        return self.how.bind(laid, parse_pattern(laid.origin.pattern).on(laid))

    def _own_placement(self) -> Placement:
        """Return the nodes of the step, and how many ranks it has on each."""
        request, how, job = self.request, self.how, self.how.allocation
        ppn = request.job.ppn
        nodes = request.nodes or how.step.values.get("list") or (job.nodes if job else "")
        if not nodes:
            raise LaunchError("not inside a job", "--nodes names the nodes")
        placement = place_ranks(self.machine, nodes, ppn, repeats=request.host_file)
        outside = set(placement.names.tolist()).difference(job.nodes) if job else None
        if outside:
            raise LaunchError(f"node {printable(min(outside), 40)} is not in the allocation")
        stated = ppn is not None or placement.ppn != 1
        if not stated or "ranks" in how.step.values or (job and job.ranks):
            ranks = how.ranks(len(placement.names))
            if not stated:
                counts = self._own_counts(ranks, placement)
                used = np.flatnonzero(counts)
                placement = replace(placement.take(used), counts=counts[used])
            if ranks != placement.ranks:
                raise LaunchError(
                    f"{ranks} ranks requested, but {placement.ranks} slots ({placement.words()})"
                )
        nodes_asked = how.step.number("nodes")
        if nodes_asked not in (None, len(placement.names)):
            raise LaunchError(f"{nodes_asked} nodes requested, but {placement.words()} given")
        self._refuse_too_many_cores(placement)
        return placement

    def _own_counts(self, ranks: int, placement: Placement) -> Ints:
        """Return the launcher's own ranks a node, for the nodes as they are listed."""
        job = self.how.allocation
        counts = self.how.counts(ranks, len(placement.names))
        if job is not None and set(job.nodes) == set(placement.names.tolist()):
            own = dict(zip(job.nodes, counts.tolist(), strict=True))
            return np.array([own[name] for name in placement.names.tolist()], dtype=np.int64)
        return counts if self.how.keeps_list else counts[inverse(placement.sorting())]

    def _refuse_too_many_cores(self, placement: Placement) -> None:
        """Refuse ranks of more cores than the job has on a node."""
        cores, job = self.how.cores(), self.how.allocation
        if job and job.cpus is not None and cores > 1 and "overcommit" not in self.how.step.values:
            job.refuse_more(placement, job.cpus // cores, f"ranks of {cores} CPUs")

    def lay(self, order: Placement) -> Placement:
        """Return the order on the nodes as the launcher takes them."""
        if self.request.launcher_order:
            return order if self.request.launcher_order == "given" else order.sorted()
        if self.how.asks_order and not self.request.dry:
            return order.renumbered(self._query_node_order(order))
        return order.sorted()

    def _query_node_order(self, order: Placement) -> Ints:
        """Return the positions of the nodes in the order that the launcher itself says."""
        try:
            bare = Launch(self.probe(self.how.launch(order.sorted(), "")).argv)
            seconds = self.request.patience or 10.0
            hosts = query_rank_nodes(bare, self.how.env, order.ranks, seconds)
        except NidmapError as error:
            raise LaunchError(
                f"this launcher orders the nodes itself, and asking it failed: {error.message}",
                "give --launcher-order sorted or given, or raise --patience",
            ) from None
        position = {plain_host(name): k for k, name in enumerate(order.names.tolist())}
        node = [position.get(plain_host(host), -1) for host in hosts]
        nodes = list(dict.fromkeys(node))
        if -1 in nodes or len(nodes) != len(position):
            raise LaunchError("the launcher puts ranks on nodes that were not planned")
        if node != np.repeat(nodes, order.counts[nodes]).tolist():
            raise LaunchError("the launcher does not fill its nodes one after the other")
        return np.array(nodes, dtype=np.int64)

    def probe(self, launch: Launch) -> Launch:
        """Return the same launch with a program that prints where each rank is."""
        how, step = self.how, self.how.step
        before = launch.argv[: len(launch.argv) - (len(step.argv) - step.program)]
        return replace(launch, argv=(*before, *rank_printer(how.rank_variables, how.host)))

    def remarks(self, order: Placement) -> list[str]:
        """Return what the user should know of the launch."""
        remarks, request, job = [], self.request, self.how.allocation
        if self.how.asks_order and request.dry and not request.launcher_order:
            remarks.append(
                "this dry run takes the nodes in NID order; a real run asks the launcher"
            )
        loose = self.how.unbound()
        if loose and not request.bind:
            remarks.append(
                f"ranks are not bound to cores ({loose}) and may move inside their nodes"
            )
        file = request.order_file  # of slots: it has numbers alone, whatever the nodes are
        if file and request.nodes is None and format_named(file) == "slots":
            remarks.append("the file's slot numbers are applied to the nodes in the job's order")
        if job is not None and request.nodes is None and len(order.names) < len(job.nodes):
            first = f"{len(order.names)} of the job's {len(job.nodes)} nodes"
            remarks.append(f"the step uses the first {first}; --nodes picks others")
        return remarks
