# SPDX-License-Identifier: Apache-2.0
"""Slurm's choices against a real slurmctld: what it allocates on random occupancies.

Holes are drained nodes and nodes of running jobs; nodes have weights, some
jobs require nodes. Each cluster gets one random
topology.conf and CASES jobs; CLUSTERS clusters a plugin make more than 200
occupancies each.
"""

import random
import re

import numpy as np
import pytest

from nidmap.placement.errors import PlanError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.scheduler.baseline import baseline_of, scheduler_choice
from nidmap.workloads.minicray.slurm import version_of
from tests.placement.planners import slurm_cases as cases
from tests.real_slurm import find_program, needs_slurm, real_slurm

CLUSTERS = 4
CASES = 42

#: The plugins.
PLUGINS = ("none", "tree", "dragonfly")


class Cluster:
    """A running cluster and what its nodes are doing, so that little has to be said to it."""

    def __init__(self, slurm, names, leaf_of):
        self.slurm, self.names, self.leaf_of = slurm, names, leaf_of
        self.weight = [1] * len(names)
        self.drained, self.used = set(), set()

    def _update(self, nodes, what):
        listed = ",".join(self.names[i] for i in sorted(nodes))
        return [f"update nodename={listed} {what}"] if nodes else []

    def occupy(self, case, rng):
        """End the jobs before, set weights, drain the nodes that are not free, or use one."""
        busy = set(range(case.n)) - set(case.free)
        running = {i for i in busy if self.leaf_of[i] >= 0 and rng.random() < 0.05}
        running = set(sorted(running)[:1])
        lines = self._update(self.used, "state=down reason=test")  # ends their jobs, too
        lines += self._update(self.used | self.drained - busy | running, "state=idle")
        self.drained = self.drained - self.used
        lines += self._update(busy - running - self.drained, "state=drain reason=test")
        for weight in sorted(set(case.weight)):
            changed = [i for i, w in enumerate(case.weight) if w == weight != self.weight[i]]
            lines += self._update(changed, f"weight={weight}")
        self.slurm.scontrol(lines)
        if running:
            self.slurm.occupy(self.names[i] for i in running)
        self.drained, self.used, self.weight = busy - running, running, list(case.weight)

    def allocate(self, case, options=()):
        """Let Slurm allocate the job; return its nodes, None where it would wait."""
        command = [
            "salloc",
            "--no-shell",
            "--immediate=1",
            "--exclusive",
            f"-N{case.count}",
            *options,
        ]
        if case.must:
            command += ["-w", ",".join(self.names[i] for i in case.must)]
        done = self.slurm.run(command, check=False)
        granted = re.search(r"Granted job allocation (\d+)", done.stderr)
        if not granted:
            assert "error" in done.stderr or "fatal" in done.stderr, done.stderr
            return None
        listed = self.slurm.run(["squeue", "-h", "-j", granted[1], "-o", "%N"]).stdout
        found = list(NodeList.parse(listed))
        self.used |= {self.names.index(name) for name in found}
        return found


def chosen(machine, plugin, case, rows):
    """Return what we take this Slurm to choose, by its version and settings."""
    version = ".".join(map(str, version_of(find_program("slurmctld"))))
    param = "Dragonfly" if plugin == "dragonfly" else ""
    topology = f"topology/{'tree' if param else plugin}"
    config = {"SLURM_VERSION": version, "TopologyPlugin": topology, "TopologyParam": param}
    baseline = baseline_of(machine, config=config)
    assert baseline.strategy.startswith(f"slurm-{plugin}")
    try:
        found = scheduler_choice(machine, case.request(rows, baseline=baseline))
    except PlanError:
        return None
    return machine.names[found].tolist()


@needs_slurm
@pytest.mark.parametrize(
    ("plugin", "cluster"),
    [(p, c) for p in PLUGINS for c in range(CLUSTERS)],
)
def test_choice_equals_what_slurmctld_allocates(plugin, cluster):
    rng = random.Random(f"{plugin}{cluster}")
    n = rng.choice([30, 48, 64])
    names = [f"n{i}" for i in range(n)]
    parent, leaf_of = cases.random_forest(rng, n, cases.KINDS[cluster % 3])
    unequal = cluster == CLUSTERS - 1
    cpus = [rng.choice([2, 4, 8]) if unequal else 4 for _ in range(n)]
    rows = np.array(rng.sample(range(n), n))
    machine = cases.machine_of(names, rows, cases.switches_of(parent, leaf_of), cpus)
    wrong = []
    with real_slurm(
        names,
        real=0,
        plugin=plugin,
        topology_conf=cases.topology_conf(parent, leaf_of, names),
        cores=dict(zip(names, cpus, strict=True)),
    ) as slurm:
        real_cluster = Cluster(slurm, names, leaf_of)
        weight = []
        for turn in range(CASES):
            case = cases.random_case(rng, n)
            weight = case.weight if turn % 3 == 0 else weight
            case.weight = weight
            real_cluster.occupy(case, rng)
            real = real_cluster.allocate(case)
            ours = chosen(machine, plugin, case, rows)
            if ours != real:
                wrong.append((case, real, ours))
    assert not wrong, f"{len(wrong)} of {CASES} differ, first {wrong[0]}; {parent} {leaf_of}"


@needs_slurm
@pytest.mark.parametrize("plugin", PLUGINS)
def test_test_only_says_what_is_allocated_where_weights_are_equal(plugin):
    rng = random.Random(plugin)
    names = [f"n{i}" for i in range(48)]
    parent, leaf_of = cases.random_forest(rng, 48, "regular")
    conf = cases.topology_conf(parent, leaf_of, names)
    with real_slurm(names, real=0, plugin=plugin, topology_conf=conf) as slurm:
        real_cluster = Cluster(slurm, names, leaf_of)
        for _ in range(10):
            case = cases.random_case(rng, 48, must=False)
            case.weight = [1] * 48
            real_cluster.occupy(case, rng)
            command = ["sbatch", "--test-only", f"-N{case.count}", "--exclusive", "--wrap=true"]
            said = slurm.run(command).stderr
            expected = list(NodeList.parse(said.split("on nodes ")[1].split()[0]))
            assert real_cluster.allocate(case) == expected


@needs_slurm
def test_the_table_of_64_nodes():
    names = [f"nid{i:05d}" for i in range(64)]
    table = {
        "none": {4: "10-13", 5: "10-14", 8: "16-23"},
        "tree": {4: "16-19", 5: "0,2-4,7", 8: "0,2-4,7-8,10-11"},
        "dragonfly": {4: "16-19", 5: "0,4,8,12,16", 8: "0,4,8,12,16,20,24,28"},
    }
    leaf_of = [i // 4 for i in range(64)]
    parent = [16 + i // 4 for i in range(16)] + [20] * 4 + [-1]
    for plugin, rows in table.items():
        conf = cases.topology_conf(parent, leaf_of, names)
        with real_slurm(names, real=0, plugin=plugin, topology_conf=conf) as slurm:
            slurm.drain(names[i] for i in (1, 5, 6, 9, 15))
            for count, numbers in rows.items():
                command = ["sbatch", "--test-only", f"-N{count}", "--exclusive", "--wrap=true"]
                said = NodeList.parse(slurm.run(command).stderr.split("on nodes ")[1].split()[0])
                wanted = [
                    range(int(a), int(b or a) + 1)
                    for a, _, b in (part.partition("-") for part in numbers.split(","))
                ]
                assert list(said) == [names[i] for some in wanted for i in some]
