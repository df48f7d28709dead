# SPDX-License-Identifier: Apache-2.0
"""Order of starts and chosen nodes, first come, first served, against a real slurmctld.

Slurm is taken from event to event of the replay: a job is submitted, or its nodes are given
back, and what it starts then on which nodes has to be what the replay starts there. Its own
clock plays no part, which holds as long as nobody overtakes (sched/builtin).
"""

import os
import time

import numpy as np
import pytest

import nidmap
from nidmap.placement.nodelist import NodeList
from nidmap.placement.switch_tree import slurm_switches
from nidmap.workloads.replay.engine import Replay
from nidmap.workloads.replay.scheduler import Rules
from tests.real_slurm import needs_slurm, real_slurm
from tests.workloads.replay.test_scheduler import trace_of

#: Nodes of the cluster, and jobs; NIDMAP_REPLAY_JOBS=300 for a longer trace.
MACHINE = "tree:4x4x6"
JOBS = int(os.environ.get("NIDMAP_REPLAY_JOBS", "25"))


def drawn_trace(seed):
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.integers(1, 40, JOBS))
    run = rng.integers(20, 400, JOBS)
    nodes = np.minimum(96, np.round(2 ** rng.uniform(0, 5.5, JOBS))).astype(int)
    return trace_of(
        [(int(s), int(r), int(r), int(n)) for s, r, n in zip(submit, run, nodes, strict=True)]
    )


def running(slurm):
    """Return the nodes of each job that Slurm runs, by its number here."""
    rows = slurm.run(["squeue", "-h", "-t", "R,CF,CG", "-o", "%j %N"]).stdout.split("\n")
    pairs = [row.split() for row in rows if len(row.split()) == 2]
    return {int(name[1:]): frozenset(NodeList.parse(nodes)) for name, nodes in pairs}


def end_job(slurm, job, nodes):
    """Cancel a job and take its nodes back."""
    slurm.run(["scancel", "-n", f"j{job}"])
    slurm.release(nodes)


def topology_conf(machine):
    switches = slurm_switches(machine)
    lines = []
    for k, name in enumerate(switches.names):
        rows = np.flatnonzero(switches.leaf_of == k)
        below = [switches.names[c] for c in np.flatnonzero(switches.parent == k)]
        what = (
            f"Nodes={','.join(machine.names[rows])}" if len(rows) else f"Switches={','.join(below)}"
        )
        lines.append(f"SwitchName={name} {what}")
    return "\n".join(lines) + "\n"


@needs_slurm
@pytest.mark.parametrize("plugin", ["none", "tree"])
def test_slurm_starts_the_same_jobs_in_the_same_order_on_the_same_nodes(plugin):
    machine = nidmap.load_machine(MACHINE)
    trace = drawn_trace(len(plugin))
    outcome = Replay(machine, trace, plugin, Rules("none"), machine.compute).run()
    ours = [frozenset(machine.names[outcome.of(k)].tolist()) for k in range(JOBS)]
    moments = sorted({*trace.submit.tolist(), *outcome.end.tolist()})
    conf = topology_conf(machine) if plugin == "tree" else None
    held, right, started, nodes = set(), 0, set(), {}
    with real_slurm(machine.names.tolist(), real=1, plugin=plugin, topology_conf=conf) as slurm:
        for now in moments:
            for job in [k for k in held if outcome.end[k] <= now]:
                end_job(slurm, job, nodes[job])
                held.discard(job)
            for job in np.flatnonzero(trace.submit == now).tolist():
                wish = ["-N", str(trace.nodes[job]), "--exclusive", "--no-requeue", "-J", f"j{job}"]
                slurm.run(["sbatch", *wish, "-o", "/dev/null", "--wrap", "sleep 9999"])
            held |= {k for k in range(JOBS) if outcome.start[k] <= now < outcome.end[k]}
            ends = time.monotonic() + 60
            while (there := running(slurm)).keys() != held and time.monotonic() < ends:
                for job in there.keys() - held - {k for k in there if outcome.end[k] > now}:
                    end_job(slurm, job, there[job])  # it was not yet running as it was ended
                time.sleep(0.05)
            assert there.keys() == held, f"at {now}"
            nodes.update(there)
            for job in held - started:
                right += there[job] == ours[job]
            started |= held
    assert len(started) == JOBS
    waited = int((outcome.start > trace.submit).sum())
    assert waited > JOBS // 4
    assert right >= 0.95 * JOBS, f"{right} of {JOBS} on the same nodes"
