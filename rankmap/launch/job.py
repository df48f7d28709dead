# SPDX-License-Identifier: Apache-2.0
"""From a user's command line to one that starts its ranks in order.

`read_job` says what a command would start, `JobLaunch.prepared` what starts it in
order. Both raise an error that says what is unclear; nothing is guessed, and
how ranks are placed changes, not how many of them sit on a node. What to do
with an error is the caller's choice (``nidmap run`` then starts the command as
it is).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.errors import LaunchError, NidmapError, UsageError
from nidmap.placement.machine_option import machine_from, named_specs
from nidmap.placement.names.pasted import read_list
from nidmap.placement.options import lay_figures
from nidmap.placement.permutation import inverse
from nidmap.placement.support.hosts import HostNames
from nidmap.placement.support.quantities import time_text
from nidmap.rankmap import progress
from nidmap.rankmap.emit import find as find_format
from nidmap.rankmap.emit import format_named, read_order_file
from nidmap.rankmap.launch import CRAY, OTHER, Launch, Launcher, find, is_mpiexec
from nidmap.rankmap.launch.allocation import allocation
from nidmap.rankmap.launch.expectation import Expectation, expectation
from nidmap.rankmap.launch.planning import PlannedLaunch
from nidmap.rankmap.launch.process import discard_launch, order_folders, store_order
from nidmap.rankmap.launch.queries import mpi_library, query_rank_nodes, rank_printer
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.score import cost, plain_number
from nidmap.rankmap.search.auto_order import order_by_strategy
from nidmap.rankmap.search.cost import TimeCost
from nidmap.rankmap.search.short_orders import fit_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nidmap.placement.machine import Machine
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints
    from nidmap.rankmap.launch.request import RunRequest
    from nidmap.rankmap.predict.job import Job

#: Remark on an order if there was no time to compute its gain.
UNTIMELY = "its gain could not be computed in time"

#: Networks on which Cray MPICH is the site's own library.
_CRAY_FABRICS = ("aries", "gemini", "slingshot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(PlannedLaunch):
    """A launch whose order file has been written."""

    # order, laid: the order on the nodes as they are listed, and as the launcher takes them
    order: Placement
    laid: Placement
    # Its expected gain, if computed (`Expectation`)
    gain: dict[str, Any] | None = None


def read_job(request: RunRequest, env: Mapping[str, str]) -> JobLaunch:
    """Return what a command would start, before an order is chosen.

    `env`: the environment of the job.
    """
    progress.advance()
    machine = _find_machine(request.job.specs, env)
    progress.advance()
    return read_job_on(machine, request, env)


def read_job_on(machine: Machine | None, request: RunRequest, env: Mapping[str, str]) -> JobLaunch:
    """Return the job on a machine; None if node names are all that is needed."""
    if "-" in (request.job.nodes, request.order_file):
        raise UsageError(
            "standard input belongs to the program", "give --nodes a list and --order a file"
        )
    job = request.job.job(needed=False)
    if not job.pattern and request.order_file is None:
        raise UsageError("no --pattern given")
    if request.order_file is not None and request.strategy != "auto":
        raise UsageError("give either --order or --strategy")
    launcher, library = _read_command(request.command, request.mpi, machine, env)
    if machine is not None and library and not machine.topology.parameters.get("mpi"):
        machine = lay_figures(machine, {"mpi": library})
    hosts = launcher.find_allocation()
    if hosts is not None and machine is not None and len(hosts.nodes):
        hosts = hosts.on(machine)
    launcher.allocation = hosts
    return JobLaunch(request, launcher, job, machine)


def _find_machine(specs: tuple[str, ...], env: Mapping[str, str]) -> Machine | None:
    """Return the named machine, else the local one if the job's nodes belong to it."""
    if named_specs(specs):
        return machine_from(specs)
    try:
        job = allocation(env)
        machine = machine_from(()) if job else None
        if job and machine:
            job.on(machine)
        return machine
    except NidmapError:
        return None  # names alone are enough for an order by J


def _read_command(
    command: Sequence[str], mpi: str, machine: Machine | None, env: Mapping[str, str]
) -> tuple[Launcher, str]:
    """Return a command's launcher, and the MPI that its ranks must have, '' if unknown.

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
        raise LaunchError(f"{program} belongs to {library.name}, not to {mpi}")
    return find(program, library.name)(command, env, library.major), library.name


@dataclass(slots=True)
class JobLaunch:
    """A launcher's command in its allocation, with the options for reordering it."""

    request: RunRequest
    launcher: Launcher  # with the command and its allocation
    job: Job  # the job's traffic; its pattern is '' if none was given
    machine: Machine | None
    # Which nodes, and how many ranks on each, rank r on slot r
    placement: Placement = field(init=False)

    def __post_init__(self) -> None:
        """Determine the nodes and the ranks on each."""
        self.placement = self._place_job_step()

    def ordered(self) -> Placement:
        """Return the order in a file, or a new one."""
        request = self.request
        if request.order_file is not None:
            numbering = request.launcher_order or "sorted"
            order = read_order_file(request.order_file, None, self.placement, numbering)
            return order.with_origin(pattern=str(self.job.pattern or order.origin.pattern))
        seconds = request.search_seconds
        order = order_by_strategy(self.placement, self.job, request.strategy, seconds)
        default = self._own_order()
        if default is None or not order.origin.optimised:
            return order
        return self._better(order, default)

    def _own_order(self) -> Placement | None:
        """Return the command's own rank placement; None if it fills node after node."""
        placement, job = self.placement, self.launcher.allocation
        own_nodes = self.launcher.own_nodes(placement.ranks)
        if own_nodes is None or job is None:
            return None
        place = {name: k for k, name in enumerate(placement.names.tolist())}
        node = np.array([place.get(job.nodes[k], -1) for k in own_nodes.tolist()])
        counts = np.bincount(node[node >= 0], minlength=len(place))
        if not np.array_equal(counts, placement.counts) or (np.diff(node) >= 0).all():
            return None
        return placement.with_ranks_on(node)

    def _better(self, order: Placement, own: Placement) -> Placement:
        """Return the chosen order, or the command's own if that is no worse."""
        chosen = dict(order.origin.optimised or {})
        if chosen["by"] == "time":
            predictor = Predictor(order.known_machine, self.job.on(order.counts.tolist()))
            now, then = (TimeCost(predictor).of(some) for some in (order, own))
            chosen |= {"time_s": min(now, then), "default_time_s": then}
            figures = f"{time_text(now)} against {time_text(then)}"
        else:
            now, then = (cost(some, self.job.pattern) for some in (order, own))
            chosen |= {"cost": plain_number(min(now, then)), "default_cost": plain_number(then)}
            figures = f"J = {plain_number(now)} against {plain_number(then)}"
        by = "predicted time" if chosen["by"] == "time" else "J"
        if now < then:
            remark = f"chosen by {by}: {figures} where the host file puts the ranks"
            return order.with_origin(optimised=chosen, remark=remark)
        remark = f"chosen by {by}: the ranks stay where the host file puts them ({figures})"
        kept = replace(order.origin, strategy="auto: as listed", remark=remark, optimised=chosen)
        return own.with_order(own.order, kept)

    def expected(self, order: Placement) -> Expectation:
        """Return the expected gain of an order over the launcher's own."""
        own_order, keeps_list = self._own_order(), self.launcher.keeps_list
        return expectation(order, self._job_of(order), keeps_list, own_order)

    def _job_of(self, order: Placement) -> Job:
        """Return the job's traffic; if unknown, what the order was made for."""
        return self.job if self.job.pattern else replace(self.job, pattern=order.origin.pattern)

    def asked_remarks(self) -> list[str]:
        """Return remarks on the command that require asking the system."""
        return self.launcher.asked_remarks(self.request.answer_seconds)

    def words(self, order: Placement, expected: str) -> str:
        """Describe the order, the criterion that chose it, and the expected gain."""
        pattern = f" of {order.origin.pattern}" if order.origin.pattern else ""
        path = self.request.order_file
        source = f" from {path}" if path is not None else ""
        strategy = f"{order.origin.strategy} " if order.origin.strategy else ""
        head = f"{strategy}order{pattern}{source} on {order.words()}"
        chosen = order.origin.optimised
        if chosen is None:
            return f"{head}; {expected}"
        kept = order.origin.strategy in ("auto: row-major", "auto: as listed")
        if chosen["by"] == "time" and not kept:
            return f"{head}, by predicted time; {expected}"
        return f"{head}; {order.origin.remark}"

    def prepared(self) -> Prepared:
        """Return the launch with its order file written, without an expected gain yet."""
        order = self.ordered()
        progress.advance()
        launcher, request, allocated = self.launcher, self.request, self.launcher.allocation
        free = self.lay(order)
        job, limit = self._job_of(order), request.mapping_limit
        laid, remark = fit_order(free, launcher.mapping(), limit, job)
        remarks = self.remarks(order) + ([remark] if laid != free else [])
        if request.bind:
            laid = launcher.bind(laid, parse_pattern(laid.origin.pattern).on(laid))
        if laid != free:  # the same on the nodes as they are listed
            place = {name: k for k, name in enumerate(laid.names.tolist())}
            order = laid.renumbered(np.array([place[name] for name in order.names.tolist()]))
        file_name = find_format(launcher.format).file_name
        folders = order_folders(launcher.on_nodes, request.order_dir)
        path = store_order(
            launcher.text(laid), file_name, allocated.job if allocated else "", folders
        )
        try:
            launch = launcher.launch(laid, path)
            return Prepared(
                launch=launch,
                path=path,
                probe=self.probe(launch),
                rank_nodes=launcher.rank_nodes(laid),
                words=self.words(order, UNTIMELY),
                remarks=[*remarks, launcher.bound.remark] if launcher.bound else remarks,
                order=order,
                laid=laid,
            )
        except BaseException:
            discard_launch(path)
            raise

    def _place_job_step(self) -> Placement:
        """Return the nodes of the job step, and how many ranks each has."""
        request, launcher, allocated = self.request, self.launcher, self.launcher.allocation
        ppn = request.job.ppn
        listed, source = read_list(request.job.nodes or "", "--nodes")
        nodes = (
            listed or launcher.parsed.values.get("list") or (allocated.nodes if allocated else "")
        )
        if not nodes:
            raise LaunchError("no nodes: this is not inside a job", "use --nodes")
        placement = place_ranks(self.machine, nodes, ppn, repeats=source not in ("", "--nodes"))
        outside = set(placement.names.tolist()).difference(allocated.nodes) if allocated else None
        if outside:
            raise LaunchError(f"node {min(outside)} is not in the allocation")
        stated = ppn is not None or placement.ppn != 1
        if not stated or "ranks" in launcher.parsed.values or (allocated and allocated.ranks):
            ranks = launcher.ranks(len(placement.names))
            if not stated:
                counts = self._launcher_counts(ranks, placement)
                used = np.flatnonzero(counts)
                placement = replace(placement.take(used), counts=counts[used])
            if ranks != placement.ranks:
                raise LaunchError(
                    f"{ranks} ranks requested, but {placement.ranks} slots ({placement.words()})"
                )
        wanted = launcher.parsed.number("nodes")
        if wanted not in (None, len(placement.names)):
            raise LaunchError(f"{wanted} nodes requested, but {placement.words()} given")
        cores, shared = launcher.cores(), "overcommit" in launcher.parsed.values
        if allocated and allocated.cpus is not None and cores > 1 and not shared:
            allocated.refuse_more(placement, allocated.cpus // cores, f"ranks of {cores} CPUs")
        return placement

    def _launcher_counts(self, ranks: int, placement: Placement) -> Ints:
        """Return the launcher's own ranks per node, for the nodes as listed."""
        allocated = self.launcher.allocation
        counts = self.launcher.counts(ranks, len(placement.names))
        if allocated is not None and set(allocated.nodes) == set(placement.names.tolist()):
            count_of = dict(zip(allocated.nodes, counts.tolist(), strict=True))
            return np.array([count_of[name] for name in placement.names.tolist()], dtype=np.int64)
        return counts if self.launcher.keeps_list else counts[inverse(placement.sorting())]

    def lay(self, order: Placement) -> Placement:
        """Return the order with nodes in the sequence in which the launcher takes them."""
        if self.request.launcher_order:
            return order if self.request.launcher_order == "given" else order.sorted()
        if self.launcher.asks_order and not self.request.dry_run:
            return order.renumbered(self._query_node_order(order))
        return order.sorted()

    def _query_node_order(self, order: Placement) -> Ints:
        """Return the positions of the nodes in the order that the launcher reports."""
        try:
            bare = Launch(self.probe(self.launcher.launch(order.sorted(), "")).argv)
            seconds = self.request.answer_seconds
            hosts = query_rank_nodes(bare, self.launcher.env, order.ranks, seconds)
        except NidmapError as error:
            raise LaunchError(
                f"this launcher orders the nodes itself, and asking it failed: {error.message}",
                "give --launcher-order sorted or given",
            ) from None
        known = HostNames(order.names.tolist())
        node = [next(iter(known.find(host)), -1) for host in hosts]
        nodes = list(dict.fromkeys(node))
        if -1 in nodes or len(nodes) != len(order.names):
            raise LaunchError("the launcher puts ranks on nodes that are not in the plan")
        if node != np.repeat(nodes, order.counts[nodes]).tolist():
            raise LaunchError("the launcher does not fill its nodes one after the other")
        return np.array(nodes, dtype=np.int64)

    def probe(self, launch: Launch) -> Launch:
        """Return the same launch of a program that prints where each rank is."""
        launcher, parsed = self.launcher, self.launcher.parsed
        before = launch.argv[: len(launch.argv) - (len(parsed.argv) - parsed.program)]
        printer = rank_printer(launcher.rank_variables, launcher.host)
        return replace(launch, argv=(*before, *printer))

    def remarks(self, order: Placement) -> list[str]:
        """Return remarks on the launch."""
        remarks, request, allocated = [], self.request, self.launcher.allocation
        if self.launcher.asks_order and request.dry_run and not request.launcher_order:
            remarks.append(
                "this dry run takes the nodes in NID order; a real run asks the launcher"
            )
        file = request.order_file  # a file of slots: it has only numbers, and does not name nodes
        if file and request.job.nodes is None and format_named(file) == "slots":
            remarks.append("the file's slot numbers are applied to the nodes in the job's order")
        count = 0 if allocated is None else len(allocated.nodes)
        if request.job.nodes is None and len(order.names) < count:
            first = f"{len(order.names)} of the job's {count} nodes"
            remarks.append(f"the step uses the first {first}; override with --nodes")
        return remarks
