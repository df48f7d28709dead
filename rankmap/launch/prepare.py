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
from rankmap.launch.cray import seems_cray
from rankmap.launch.launch_folder import discard_launch, order_folders, store_order
from rankmap.launch.mpi_library import mpi_library
from rankmap.launch.prepared import Prepared, RunRequest, rank_nodes
from rankmap.launch.queries import query_rank_nodes, rank_printer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine
    from rankmap.launch import Launcher
    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["prepare"]

#: Networks on which Cray MPICH is the site's own library.
_CRAY_FABRICS = ("aries", "gemini", "slingshot")


def prepare(
    command: Sequence[str],
    request: RunRequest,
    env: Mapping[str, str],
    machine: Machine | None = None,
) -> Prepared:
    """Return the launch that runs `command` with its ranks in the order asked for.

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
        What is missing, contradictory or not known; no file is left behind.
    """
    from rankmap.order_store import stored_or_arranged

    if not request.pattern:
        raise UsageError("no --pattern given")
    how = _find_launcher(command[0], request.mpi, machine, env)
    step = how.read(command, env)
    allocation = _name_nodes(how.allocation(step, env), machine)
    job = _Job(how, step, allocation, request, env)
    slots = job.slots(machine)
    progress.step()
    order = stored_or_arranged(slots, request.pattern, request.strategy, request.machine_specs)
    progress.step()
    laid = job.lay(order)
    text = how.text(laid, "given", step)
    folders = order_folders(how.on_nodes, request.folder)
    path = store_order(text, how.form, allocation.job if allocation else "", folders)
    try:
        launch = how.launch(step, laid, path, allocation)
        return Prepared(
            launch=launch,
            order=order,
            path=path,
            probe=job.probe(launch),
            rank_nodes=rank_nodes(how.form, laid),
            remarks=tuple(job.remarks(order)),
            laid=laid,
            form=how.form,
            variables=how.rank_variables,
        )
    except BaseException:
        discard_launch(path)
        raise


def _find_launcher(
    program: str, mpi: str, machine: Machine | None, env: Mapping[str, str]
) -> Launcher:
    """Return the launcher of the command; an mpiexec is asked which MPI it belongs to."""
    if not is_mpiexec(program):
        return find(program, _library_here(machine, env) if mpi == "auto" else mpi)
    if mpi == CRAY:
        return find(program, CRAY)
    library = mpi_library(program, env)
    if mpi not in ("auto", OTHER, library.name):
        raise LaunchError(f"{printable(program, 40)} belongs to {library.name}, not to {mpi}")
    how = find(program, library.name)
    how.version = library.version
    return how


def _library_here(machine: Machine | None, env: Mapping[str, str]) -> str:
    """Return the MPI library that goes with the machine's network, else with the modules."""
    if machine is not None and machine.topology.fabric:
        return CRAY if machine.topology.fabric in _CRAY_FABRICS else OTHER
    return CRAY if seems_cray(env) else OTHER


def _name_nodes(allocation: Allocation | None, machine: Machine | None) -> Allocation | None:
    """Return an allocation whose nodes go by the machine's names, not NIDs or domain names."""
    if allocation is None or machine is None or not len(allocation.nodes):
        return allocation
    from placement.lookup import rows_of
    from placement.nodelist import NodeList

    nodes = allocation.nodes
    if nodes[0].isdigit():
        rows = rows_of(machine, ",".join(nodes))
        return replace(allocation, nodes=NodeList(machine.names[rows].tolist()))
    if "." in nodes[0] and nodes[0] not in set(machine.names.tolist()):
        return replace(allocation, nodes=NodeList([_host(name) for name in nodes]))
    return allocation


@dataclass(frozen=True, slots=True)
class _Job:
    """A launcher's command in its allocation, and what was asked for it."""

    how: Launcher
    step: Parsed
    allocation: Allocation | None
    request: RunRequest
    env: Mapping[str, str]

    def slots(self, machine: Machine | None) -> Slots:
        """Return the slots of the step: which nodes, and how many ranks on each."""
        from rankmap.slots import slots_of

        given, how, job = self.request, self.how, self.allocation
        nodes = given.nodes or how.nodes(self.step) or (job.nodes if job else "")
        if not nodes:
            raise LaunchError("no allocation", "SLURM_JOB_NODELIST is not set and no --nodes given")
        slots = slots_of(machine, nodes, given.ppn, repeats=given.host_file)
        outside = set(slots.names.tolist()).difference(job.nodes) if job else None
        if outside:
            raise LaunchError(f"node {printable(min(outside), 40)} is not in the allocation")
        stated = given.ppn is not None or slots.ppn != 1
        if not stated or how.ranks_option in self.step.values or (job and job.ranks):
            ranks = how.ranks(self.step, len(slots.names), job)
            if not stated:
                counts = self._own_counts(ranks, slots)
                used = np.flatnonzero(counts)
                slots = replace(slots.take(used), counts=counts[used])
            if ranks != len(slots):
                raise LaunchError(
                    f"{ranks} ranks to start, but {len(slots)} slots ({slots.words()})"
                )
        self._refuse_too_many_cores(slots)
        return slots

    def _own_counts(self, ranks: int, slots: Slots) -> NDArray[np.int64]:
        """Return the launcher's own ranks a node, for the nodes as they are listed."""
        from rankmap.permutation import inverse

        job = self.allocation
        counts = self.how.counts(self.step, ranks, len(slots.names), job)
        if job is not None and set(job.nodes) == set(slots.names.tolist()):
            own = dict(zip(job.nodes, counts.tolist(), strict=True))
            return np.array([own[name] for name in slots.names.tolist()], dtype=np.int64)
        return counts if self.how.keeps_list else counts[inverse(slots.sorting())]

    def _refuse_too_many_cores(self, slots: Slots) -> None:
        """Refuse ranks of more cores than the job has on a node."""
        cores, job = self.how.cores(self.step), self.allocation
        if job is None or job.cpus is None or cores == 1 or "overcommit" in self.step.values:
            return
        have = dict(zip(job.nodes, job.cpus.tolist(), strict=True))
        for name, count in zip(slots.names.tolist(), slots.counts.tolist(), strict=True):
            if count * cores > have.get(name, 0):
                raise LaunchError(
                    f"{count} ranks of {cores} CPUs on {name}, which has {have.get(name, 0)}"
                )

    def lay(self, order: Order) -> Order:
        """Return the order on the nodes as the launcher takes them."""
        if self.request.launcher_order:
            return order if self.request.launcher_order == "given" else order.sorted()
        if self.how.asks_order and not self.request.dry:
            return order.onto(self._query_node_order(order))
        return order.sorted()

    def _query_node_order(self, order: Order) -> NDArray[np.int64]:
        """Return the positions of the nodes in the order that the launcher itself says."""
        try:
            bare = self.how.launch(self.step, order.sorted(), "", self.allocation)
            argv = self.probe(bare).argv
            seconds = self.request.patience or 10.0
            said = query_rank_nodes(Launch(argv), self.env, len(order), seconds)
        except NidmapError as error:
            raise LaunchError(
                f"this launcher takes nodes in an order of its own, and asked for it: "
                f"{error.message}",
                "say --launcher-order sorted or given, or raise --patience",
            ) from None
        position = {_host(name): k for k, name in enumerate(order.on.names.tolist())}
        node = [position.get(_host(host), -1) for host in said]
        nodes = list(dict.fromkeys(node))
        if -1 in nodes or len(nodes) != len(position):
            raise LaunchError("the launcher puts ranks on other nodes than were planned")
        if node != np.repeat(nodes, order.on.counts[nodes]).tolist():
            raise LaunchError("the launcher does not put ranks in blocks on its nodes")
        return np.array(nodes, dtype=np.int64)

    def probe(self, launch: Launch) -> Launch:
        """Return the same launch with a program that prints where each rank is."""
        before = launch.argv[: len(launch.argv) - (len(self.step.argv) - self.step.program)]
        return replace(
            launch, argv=(*before, *rank_printer(self.how.rank_variables, self.how.host))
        )

    def remarks(self, order: Order) -> list[str]:
        """Return what the user should know of the launch."""
        found, given, job = [], self.request, self.allocation
        if self.how.asks_order and given.dry and not given.launcher_order:
            found.append(
                "computed for nodes in NID order: a real run asks the launcher for its own"
            )
        loose = self.how.unbound(self.step, self.env)
        if loose:
            found.append(
                f"ranks are not bound to cores ({loose}): the order holds while they stay put"
            )
        if order.strategy == "auto: row-major" and order.remark:
            found.append(order.remark)
        if job is not None and given.nodes is None and len(order.on.names) < len(job.nodes):
            first = f"{len(order.on.names)} of the job's {len(job.nodes)} nodes"
            found.append(f"the step is put on the first {first}; --nodes names others")
        return found


def _host(name: str) -> str:
    return name.partition(".")[0]
