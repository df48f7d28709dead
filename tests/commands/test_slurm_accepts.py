# SPDX-License-Identifier: Apache-2.0
"""A real slurmctld with Shaheen II's 6,174 nodes takes the lists of planners."""

import json
import re

import pytest

from tests.real_slurm import needs_slurm, real_slurm

#: Lists of long and of short ranges, in ascending order and not.
STRATEGIES = ("blades", "hilbert", "random", "slurm-tree")


@pytest.fixture(scope="module")
def shaheen():
    """A Slurm with all compute nodes of Shaheen II, one of them real."""
    import nidmap

    machine = nidmap.load_machine("shaheen2")
    with real_slurm(machine.names[machine.compute].tolist(), plugin="none", real=1) as slurm:
        yield slurm


@needs_slurm
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_list_of_a_planner_is_accepted(inside, shaheen, strategy):
    plan = ("plan", "-m", "shaheen2", "-N", "216", "--strategy", strategy)
    done = inside(*plan, "--from", "idle", env=shaheen.env)
    assert done.code == 0, done.err
    asked = ["sbatch", "--test-only", "-N216", "-w", done.out.strip(), "--wrap=true"]
    answer = shaheen.run(asked)
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"to start at .* using .* processors on nodes", answer.stderr)


@needs_slurm
def test_half_the_machine_is_accepted(inside, shaheen):
    done = inside("plan", "-m", "shaheen2", "-N", "3087", "--strategy", "blades")
    answer = shaheen.run(["sbatch", "--test-only", "-w", done.out.strip(), "--wrap=true"])
    assert answer.returncode == 0, answer.stderr


@needs_slurm
def test_the_header_is_accepted_as_a_script(inside, shaheen, tmp_path):
    script = tmp_path / "job.sh"
    options = ("--strategy", "hilbert", "--format", "sbatch", "--ppn", "1", "-o", str(script))
    assert inside("plan", "-m", "shaheen2", "-N", "216", *options).code == 0
    script.write_text(script.read_text() + "srun ./app\n")
    answer = shaheen.run(["sbatch", "--test-only", str(script)])
    assert answer.returncode == 0, answer.stderr


@needs_slurm
def test_a_softer_header_is_accepted(inside, shaheen, tmp_path):
    script = tmp_path / "job.sh"
    options = ("--strategy", "compact", "--format", "exclude", "-o", str(script))
    assert inside("plan", "-m", "shaheen2", "-N", "64", *options).code == 0
    answer = shaheen.run(["sbatch", "--test-only", str(script)])
    assert answer.returncode == 0, answer.stderr


@needs_slurm
def test_idle_nodes_are_asked_and_pinning_is_priced(inside, shaheen):
    busy = shaheen_nodes()[:400]
    shaheen.drain(busy)
    try:
        plan = ("plan", "-m", "shaheen2", "-N", "64", "--from", "idle", "--check", "--json")
        done = inside(*plan, env=shaheen.env)
    finally:
        shaheen.resume(busy)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["free"] == 6174 - 400
    assert not set(document["nodes"]) & set(busy)
    assert set(document["check"]) >= {"pinned", "unpinned"}
    assert "start" in done.err


def shaheen_nodes():
    import nidmap

    machine = nidmap.load_machine("shaheen2")
    return machine.names[machine.compute].tolist()
