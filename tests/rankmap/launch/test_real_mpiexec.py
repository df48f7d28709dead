# SPDX-License-Identifier: Apache-2.0
"""Real launches by mpiexec: every rank says itself on which node it is."""

import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

from nidmap.rankmap.emit import emit
from nidmap.rankmap.emit.hosts import RANK_FILE, host_runs
from nidmap.rankmap.emit.process_mapping import hydra_vector, mapping_vector
from nidmap.rankmap.launch.launchers.mpiexec import Hydra
from nidmap.rankmap.orders import arrange
from tests.hwloc_xml import node_xml
from tests.rankmap.helpers import named, slots
from tests.rankmap.mpis import mpi, patiently

pytestmark = pytest.mark.mpi
__all__ = ["mpi"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
RANK = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK", "intel": "PMI_RANK"}


def where(name):
    """Return a program that prints its rank, its node and the cores it may use."""
    cores = "$(sed -n 's/Cpus_allowed_list:.//p' /proc/self/status)"
    return ["sh", "-c", f'printf "at %s %s %s\\n" "${RANK[name]}" "$(uname -n)" "{cores}"']


def launched(command, env, folder):
    """Return node and cores of each rank."""
    count = int(command[command.index("-n") + 1])
    code, out, talk = patiently(command, env, folder, lambda out: out.count("at ") == count)
    assert code == 0, talk + out
    lines = [line.split() for line in out.splitlines() if line.startswith("at ")]
    said = {int(rank): rest for _, rank, *rest in lines}
    assert sorted(said) == list(range(count))
    return [said[r] for r in sorted(said)], talk


def order(*counts):
    """Return an order that no launcher makes by itself."""
    on = slots(named(9, 3, 7)[: len(counts)], list(counts))
    return on.with_order(np.random.default_rng(7).permutation(on.ranks))


def test_an_order_file_as_it_is_puts_every_rank_on_its_node(mpi, tmp_path):
    name, version, env, words = mpi
    made = order(3, 2, 2)
    form = {"openmpi": "seq", "mpich": "hydra", "intel": "intel"}[name]
    (tmp_path / "order").write_text(emit(made, form))
    options = {
        "mpich": ["-f", "order"],
        "intel": ["-machinefile", "order"],
        "openmpi": [
            "--host",
            "nid00003:2,nid00007:2,nid00009:3",
            "--map-by",
            "seq:OVERSUBSCRIBE:file=order",
        ],
    }[name]
    if name == "openmpi" and version.startswith("4."):
        options = ["--hostfile", "order", "--mca", "rmaps", "seq"]
    command = ["mpiexec", *words, *options, "-n", "7", *where(name)]
    said, _ = launched(command, env, tmp_path)
    assert [node for node, _ in said] == made.host_of_rank.tolist()


def test_a_rankfile_binds_every_rank_to_its_core(mpi, tmp_path):
    name, version, env, words = mpi
    if name != "openmpi" or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("rankfiles are Open MPI's, and need two cores here")
    made = order(2, 2)
    (tmp_path / "order").write_text(RANK_FILE.write(made))
    options = ["--map-by", "rankfile:file=order"]
    options = ["--rankfile", "order"] if version.startswith("4.") else options
    hosts = ["--host", "nid00003:2,nid00009:2"]
    said, _ = launched(
        ["mpiexec", *words, *hosts, *options, "-n", "4", *where(name)], env, tmp_path
    )
    assert [node for node, _ in said] == made.host_of_rank.tolist()
    place = made.slot_of_rank - made.first_slot[made.node_of_rank]
    cores = sorted(os.sched_getaffinity(0))
    assert [cpus for _, cpus in said] == [str(cores[p]) for p in place]


#: Host files of Hydra as lines, and what more its command says.
HOST_FILES = [
    ("nid3 nid7 nid3 nid7", ()),
    ("nid3 nid7 nid9", ()),
    ("nid3:2 nid7", ()),
    ("nid3:2 nid7 nid3", ()),
    ("nid3 nid3 nid7", ()),
    ("nid7 nid3 nid3", ("-ppn", "2")),
    ("nid3 nid7 nid3", ("-ppn", "2")),
]


@pytest.mark.parametrize(("lines", "more"), HOST_FILES)
@pytest.mark.parametrize("ranks", [3, 4, 7])
def test_hydra_places_ranks_by_the_lines_of_its_host_file(mpi, tmp_path, lines, more, ranks):
    name, _, env, words = mpi
    if name != "mpich":
        pytest.skip("host files of others are not taken line by line")
    (tmp_path / "hosts").write_text("\n".join(lines.split()) + "\n")
    command = ["mpiexec", *words, "-f", "hosts", *more, "-n", str(ranks), *where(name)]
    said, _ = launched(command, env, tmp_path)
    launcher = Hydra(["mpiexec", "-f", str(tmp_path / "hosts"), *more, "./a"], {})
    job = launcher.allocation = launcher.find_allocation()
    own = launcher.own_nodes(ranks)
    assert [node for node, _ in said] == [job.nodes[k] for k in own.tolist()]
    assert (
        launcher.counts(ranks, len(job.nodes)).tolist()
        == np.bincount(own, minlength=len(job.nodes)).tolist()
    )


@pytest.mark.parametrize("verify", [(), ("--verify",)])
@pytest.mark.parametrize(("ppn", "grid"), [("2", "2x3"), ("1,3,2", "3x2")])
def test_run_puts_every_rank_where_the_order_says(mpi, tmp_path, ppn, grid, verify):
    name, version, env, words = mpi
    counts = [int(n) for n in ppn.split(",")] if "," in ppn else int(ppn)
    made = arrange(slots(named(9, 3, 7), counts), f"stencil:{grid}", "hilbert")
    if name == "mpich" and int(version.split(".")[0]) < 5 and len(host_runs(made)[0]) > 3:
        pytest.skip("MPICH before 5 is not given orders that tear nodes")
    hosts = {"openmpi": "nid00003:3,nid00007:3,nid00009:3"}.get(name)
    words = [*words, "--host", hosts] if hosts else words
    nodes = "nid[00009,00003,00007]"
    command = [
        sys.executable, "-m", "nidmap", "run", "--nodes", nodes, "--ppn", ppn, "--pattern",
        f"stencil:{grid}",
        "--strategy", "hilbert", "--strict", "--patience", "60", *verify, "--",
        "mpiexec", *words, "-n", "6",
        *where(name),
    ]  # fmt: skip
    said, talk = launched(command, {**env, "PYTHONPATH": ROOT}, tmp_path)
    assert [node for node, _ in said] == made.host_of_rank.tolist()
    assert ("verified: all 6 ranks" in talk) == bool(verify)


def test_run_binds_every_rank_to_its_core(mpi, tmp_path):
    name, version, env, words = mpi
    cores = sorted(os.sched_getaffinity(0))
    if cores[:2] != [0, 1] or name == "intel" or (name == "mpich" and version.startswith("4")):
        pytest.skip("two cores, and an MPI that is bound")
    (tmp_path / "node.xml").write_text(node_xml(1, 1, 1, 2, 1))
    hosts = ["--host", "nid00003:2,nid00007:2"] if name == "openmpi" else []
    command = [
        sys.executable, "-m", "nidmap", "run", "-m", "torus:4x4", "-m", "node.xml",
        "--nodes", "nid[00003,00007]", "--ppn", "2", "--pattern",
        "stencil:2x2", "--strategy", "hilbert",
        "--bind", "--strict", "--patience", "60", "--", "mpiexec", *words, *hosts, "-n", "4",
        *where(name),
    ]  # fmt: skip
    said, talk = launched(command, {**env, "PYTHONPATH": ROOT}, tmp_path)
    assert sorted(map(tuple, said)) == [(n, c) for n in named(3, 7) for c in ("0", "1")]
    assert "inside the nodes" in talk


def test_options_of_the_users_own_reach_the_launcher(mpi, tmp_path):
    name, _, env, words = mpi
    if name != "openmpi":
        pytest.skip("--mca and --oversubscribe are Open MPI's")
    hosts = ["--host", "nid00003:1,nid00007:1,nid00009:1"]
    own = ["--oversubscribe", "--mca", "btl_base_verbose", "0", "--tag-output"]
    command = [
        sys.executable, "-m", "nidmap", "run", "--nodes", "nid[00009,00003,00007]", "--ppn", "2",
        "--pattern",
        "stencil:2x3", "--strategy", "hilbert", "--strict", "--patience", "60", "--dry-run",
        "--", "mpiexec", *words, *hosts, *own, "-n", "6", "./app",
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**env, "PYTHONPATH": ROOT}, cwd=tmp_path, capture_output=True, text=True,
        check=True, timeout=600,
    )  # fmt: skip
    assert shlex.join([*own, "-n", "6", "./app"]) in done.stdout
    made = arrange(slots(named(9, 3, 7), 2), "stencil:2x3", "hilbert")
    command.remove("--dry-run")
    command.remove("--tag-output")
    said, _ = launched([*command[:-1], *where(name)], {**env, "PYTHONPATH": ROOT}, tmp_path)
    assert [node for node, _ in said] == made.host_of_rank.tolist()


@pytest.mark.parametrize("called", ["mpiexec.{}", "mpirun.{}", "orterun"])
def test_run_knows_a_distributions_own_names(mpi, tmp_path, called):
    name, _, env, words = mpi
    path = tmp_path / called.format(name)
    path.write_text('#!/bin/sh\nexec mpiexec "$@"\n')
    path.chmod(0o755)
    words = [*words, "--host", "nid00003:1,nid00007:1,nid00009:1"] if name == "openmpi" else words
    command = [
        sys.executable, "-m", "nidmap", "run", "--nodes", "nid[00009,00003,00007]", "--ppn", "1",
        "--pattern", "ring", "--strict", "--patience", "60", "--", str(path), *words, "-n", "3",
        *where(name),
    ]  # fmt: skip
    said, _ = launched(command, {**env, "PYTHONPATH": ROOT}, tmp_path)
    made = arrange(slots(named(9, 3, 7), 1), "ring", "auto")
    assert [node for node, _ in said] == made.host_of_rank.tolist()


def test_run_takes_the_hosts_of_the_command(mpi, tmp_path):
    name, version, env, words = mpi
    text = "".join(f"nid{k:05d}{' slots=' if name == 'openmpi' else ':'}2\n" for k in (9, 3, 7))
    (tmp_path / "hosts").write_text(text)
    option = {"mpich": "-f", "intel": "-machinefile", "openmpi": "--hostfile"}[name]
    command = [
        sys.executable, "-m", "nidmap", "run", "--pattern", "stencil:2x2", "--strategy", "morton",
        "--strict", "--patience", "60",
        "--", "mpiexec", *words, option, "hosts", "-n", "4", *where(name),
    ]  # fmt: skip
    said, _ = launched(command, {**env, "PYTHONPATH": ROOT}, tmp_path)
    made = arrange(slots(named(9, 3), 2), "stencil:2x2", "morton")
    assert [node for node, _ in said] == made.host_of_rank.tolist()
    assert (tmp_path / "hosts").read_text() == text
    assert version


def test_mpich_tells_its_ranks_the_mapping_that_is_counted_on(mpi, tmp_path):
    name, version, env, words = mpi
    if name != "mpich" or int(version.split(".")[0]) < 5:
        pytest.skip("the vector's words are those of MPICH 5")
    made = order(3, 2, 2).sorted()
    pairs = zip(made.names, made.counts, strict=True)
    (tmp_path / "hosts").write_text("".join(f"{host}:{count}\n" for host, count in pairs))
    program = os.path.join(os.path.dirname(__file__), "print_mapping.py")
    told = [
        "-f",
        "hosts",
        "-rankmap",
        mapping_vector(made.node_of_rank),
        "-n",
        "7",
        sys.executable,
        program,
    ]
    code, out, talk = patiently(
        ["mpiexec", *words, *told], env, tmp_path, lambda out: "mapping" in out
    )
    assert code == 0, talk
    assert out.split()[1:] == [hydra_vector(made.node_of_rank)]
