# SPDX-License-Identifier: Apache-2.0
"""Snapshots: simultaneous jobs on the nodes that a replay gave them, under two policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nidmap.placement.load import load_machine
from nidmap.placement.options import with_figures
from nidmap.workloads.replay.engine import Replay
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.sharing import JobTraffic, Network
from nidmap.workloads.replay.trace import Columns, Trace, clean_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nidmap.placement.support.array_types import Ints

#: Jobs of a snapshot, at least and at most, their nodes, and the shares of time they communicate.
_JOBS, _SIZES, _SHARES = (5, 8), (2, 3, 4, 5, 6), (0.3, 0.5, 0.7, 1.0)

#: Seconds of a round alone on the best nodes, as links are slowed; bytes of a message.
_ROUND, _BYTES = (0.05, 0.15), (20e3, 400e3)

#: The placement that is no policy's.
RANDOM = "random"

#: When the jobs come: after those that leave holes have ended.
_COMES = 100.0

#: Process grids of an FFT by nodes, where there is one of two dimensions.
_GRIDS = {4: "2x2", 6: "3x2"}


class Running(NamedTuple):
    """A running job: what it sends, from which nodes."""

    app: JobTraffic
    rows: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The same simultaneous jobs, on the nodes of each policy or on any others."""

    seed: int
    jobs: dict[str, list[Running]]  # by policy, the same jobs in the same order

    @property
    def changed(self) -> int:
        """The number of jobs whose nodes differ between policies."""
        by_job = zip(*self.jobs.values(), strict=True)
        return sum(len({tuple(sorted(job.rows.tolist())) for job in jobs}) > 1 for jobs in by_job)


def network_of(spec: str) -> Network:
    """Return a mini-Cray's links for a replay: its routers' routing, no latency."""
    return Network(with_figures(load_machine(spec), routing="single", latency=0))


def draw_snapshot(network: Network, seed: int, policies: Sequence[str], slowed: float) -> Snapshot:
    """Return a seed's first snapshot in which policies differ for half of the jobs.

    `slowed`: how many times longer a message takes on the mini-Cray's links than on the machine's.
    """
    rng = np.random.default_rng(seed)
    while True:
        trace, apps = _draw_trace(network, rng, slowed)
        jobs = {policy: _run(network, trace, apps, policy) for policy in policies}
        snapshot = Snapshot(seed, jobs)
        if 2 * snapshot.changed >= len(jobs[policies[0]]):
            jobs[RANDOM] = _scatter(jobs[policies[0]], rng)
            return snapshot


def _scatter(jobs: Sequence[Running], rng: np.random.Generator) -> list[Running]:
    """Return the same jobs on redistributed nodes, as on a machine long in use."""
    rows = rng.permutation(np.concatenate([job.rows for job in jobs]))
    ends = np.cumsum([len(job.rows) for job in jobs])[:-1]
    parts = zip(jobs, np.split(rows, ends), strict=True)
    return [Running(job.app, np.sort(part)) for job, part in parts]


def _draw_trace(
    network: Network, rng: np.random.Generator, slowed: float
) -> tuple[Trace, list[JobTraffic]]:
    """Return one-node jobs that leave holes, followed by jobs that share the links."""
    nodes = len(network.machine.compute.nonzero()[0])
    held = int(rng.integers(2, nodes // 5 + 1))
    sizes = np.array([nodes])
    while sizes.sum() > nodes - held:
        sizes = rng.choice(_SIZES, rng.integers(_JOBS[0], _JOBS[1] + 1))
    stay = rng.permutation(nodes) < held
    rows = [(0.0, 1e6 if one else _COMES / 2, 1) for one in stay]
    rows += [(_COMES, 1e3, int(size)) for size in sizes]
    nan = float("nan")
    columns = [
        (str(k), come, nan, run, run, size, "", "") for k, (come, run, size) in enumerate(rows)
    ]
    silent = JobTraffic("alltoall", 1, None, 0.0)
    apps = [_draw_application(network, rng, int(size), slowed) for size in sizes]
    return clean_trace(Columns.of_rows(columns), "drawn"), [silent] * nodes + apps


def _draw_application(
    network: Network, rng: np.random.Generator, count: int, slowed: float
) -> JobTraffic:
    grid = _GRIDS.get(count, str(count))
    pattern = rng.choice(["alltoall", "stencil:auto", f"fft:{grid}", "ring"])
    app = JobTraffic(str(pattern), 1, 1e6, float(rng.choice(_SHARES)))
    a_byte = network.best(app, count) * slowed / 1e6
    size = np.clip(rng.uniform(*_ROUND) / a_byte, *_BYTES)
    return app._replace(bytes=float(round(size, -3)))


def _run(network: Network, trace: Trace, apps: list[JobTraffic], policy: str) -> list[Running]:
    machine = network.machine
    outcome = Replay(machine, trace, policy, Rules("easy"), machine.compute, apps, network).run()
    together = np.flatnonzero(trace.nodes > 1)
    assert (outcome.start[together] == _COMES).all(), "they fit into the holes"
    return [Running(apps[job], outcome.of(job)) for job in together.tolist()]
