# SPDX-License-Identifier: Apache-2.0
"""What a launcher's command line becomes, and when it is left alone."""

import os
import shlex

import numpy as np
import pytest

from nidmap.placement.errors import LaunchError, NidmapError, UsageError
from nidmap.placement.load import load_machine
from nidmap.rankmap.emit import read_order
from nidmap.rankmap.launch import CRAY, INTEL, OPENMPI, OTHER, Launch, find
from nidmap.rankmap.launch import _launchers as launchers
from nidmap.rankmap.launch.job import read_job_on
from nidmap.rankmap.launch.request import JobArguments, RunRequest
from nidmap.rankmap.orders import arrange
from tests.rankmap.helpers import named, slots

JOB = {
    "SLURM_JOB_NODELIST": "nid[00012-00015]",
    "SLURM_TASKS_PER_NODE": "16(x4)",
    "SLURM_JOB_CPUS_PER_NODE": "32(x4)",
    "SLURM_NTASKS": "64",
    "SLURM_JOB_ID": "4711",
}
WISH = {"pattern": "fft:8x8", "strategy": "morton"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared(line, env=JOB, machine=None, **wish):
    wish = {**WISH, **wish}
    words = {name: wish.pop(name) for name in ("pattern", "ppn", "nodes") if name in wish}
    request = RunRequest(tuple(shlex.split(line)), JobArguments(**words), **wish)
    return read_job_on(machine, request, env).prepared()


def refused(line, env=JOB, machine=None, **wish):
    before = os.listdir()
    with pytest.raises(NidmapError) as caught:
        prepared(line, env, machine, **wish)
    assert os.listdir() == before
    return str(caught.value)


def order_of(result, form, on, launcher_order="sorted"):
    with open(result.path) as stream:
        return read_order(stream.read(), form, on, result.path, launcher_order)


def test_srun_gets_a_host_file():
    result = prepared("srun -n 64 ./app --its 3")
    hosts = (f"--nodelist={result.path}", "--distribution=arbitrary")
    assert result.launch.argv == ("srun", *hosts, "-n", "64", "./app", "--its", "3")
    assert result.launch.env == {"NIDMAP_LAUNCH": result.path}
    on = slots(named(12, 13, 14, 15), 16)
    expected = arrange(on, "fft:8x8", "morton")
    assert order_of(result, "slurm", on).host_of_rank.tolist() == expected.host_of_rank.tolist()


def test_srun_without_n_gets_the_jobs_number():
    assert prepared("srun ./app").launch.argv[3:] == ("--ntasks=64", "./app")


def test_ntasks_per_node_says_how_many_where_nothing_else_does():
    env = {"SLURM_JOB_NODELIST": "nid[00012-00015]"}
    result = prepared("srun --ntasks-per-node=16 ./app", env)
    assert result.launch.argv[3:] == ("--ntasks=64", "--ntasks-per-node=16", "./app")
    outside = prepared("srun --ntasks-per-node=16 ./app", {}, nodes="nid[00012-00015]")
    assert outside.order.counts.tolist() == [16, 16, 16, 16]


def test_ranks_a_node_as_given_say_how_many_where_nothing_else_does():
    result = prepared("srun ./app", {}, nodes="nid[00012-00014]", ppn="32,16,16")
    assert result.launch.argv[3:] == ("--ntasks=64", "./app")
    assert result.order.counts.tolist() == [32, 16, 16]


@pytest.mark.parametrize(
    ("line", "env", "counts"),
    [
        ("srun ./app", {}, [1, 1, 1, 1]),
        ("srun -N 2 ./app", {}, [1, 1]),
        ("srun ./app", {"SLURM_NTASKS_PER_NODE": "3"}, [3, 3, 3, 3]),
        ("srun --ntasks-per-node=2 ./app", {"SLURM_NTASKS_PER_NODE": "3"}, [2, 2, 2, 2]),
        ("srun ./app", {"SLURM_NPROCS": "8"}, [2, 2, 2, 2]),
    ],
)
def test_a_plain_srun_is_one_rank_a_node_unless_slurm_says_otherwise(line, env, counts):
    job = {"SLURM_JOB_NODELIST": "nid[00012-00015]", "SLURM_TASKS_PER_NODE": "16(x4)",
           "SLURM_JOB_CPUS_PER_NODE": "16(x4)"}  # fmt: skip
    result = prepared(line, job | env, pattern="ring")
    assert result.order.counts.tolist() == counts
    assert f"--ntasks={sum(counts)}" in result.launch.argv


def test_cray_mpich_gets_sorted_nodes_blocks_and_its_rank_order():
    result = prepared("srun -n 64 ./app", mpi=CRAY)
    assert result.launch.argv == (
        "srun", "--nodelist=nid[00012-00015]", "--nodes=4", "--distribution=block",
        "--ntasks-per-node=16", "-n", "64", "./app",
    )  # fmt: skip
    assert result.launch.env == {
        "MPICH_RANK_REORDER_METHOD": "3",
        "MPICH_RANK_REORDER_FILE": result.path,
    }
    on = slots(named(12, 13, 14, 15), 16)
    assert order_of(result, "mpich", on) == arrange(on, "fft:8x8", "morton")


def test_cray_mpich_nodes_given_in_another_order_are_translated():
    result = prepared("srun -n 64 ./app", mpi=CRAY, nodes="nid[00015,00012-00014]")
    assert "--nodelist=nid[00012-00015]" in result.launch.argv
    given = slots(named(15, 12, 13, 14), 16)
    assert order_of(result, "mpich", given) == arrange(given, "fft:8x8", "morton")
    as_sorted = order_of(result, "mpich", slots(named(12, 13, 14, 15), 16))
    assert as_sorted.host_of_rank[0] == "nid00015"


def test_a_host_file_keeps_the_order_of_nodes_given():
    result = prepared("srun -n 64 ./app", nodes="nid[00015,00012-00014]")
    with open(result.path) as stream:
        assert stream.readline() == "nid00015\n"


@pytest.mark.parametrize(
    ("spec", "env", "expected"),
    [
        ("dragonfly:groups=2,chassis=2,blades=4,nodes=4", {}, "NIDMAP_LAUNCH"),
        (None, {"CRAY_MPICH_VERSION": "8.1.27"}, "MPICH_RANK_REORDER_FILE"),
        (None, {"CRAY_MPICH_DIR": "/opt/cray/pe/mpich"}, "MPICH_RANK_REORDER_FILE"),
        (None, {}, "NIDMAP_LAUNCH"),
        ("shaheen2", {}, "MPICH_RANK_REORDER_FILE"),
        ("tara", {"CRAY_MPICH_VERSION": "8"}, "NIDMAP_LAUNCH"),
    ],
)
def test_the_mpi_library_follows_the_network_else_the_modules(spec, env, expected):
    machine = load_machine(spec) if spec else None
    nodes = None
    if machine is not None:
        nodes = ",".join(machine.names[machine.free][:4].tolist())
    job = env if nodes else JOB | env
    result = prepared("srun -n 64 ./app", job, machine, nodes=nodes, ppn="16" if nodes else None)
    assert expected in result.launch.env


def test_uneven_jobs_keep_their_ranks_a_node():
    env = JOB | {"SLURM_TASKS_PER_NODE": "32(x2),16", "SLURM_NTASKS": "80"}
    env |= {"SLURM_JOB_NODELIST": "nid[00012-00014]", "SLURM_JOB_CPUS_PER_NODE": "32(x3)"}
    result = prepared("srun ./app", env, pattern="stencil:8x10")
    with open(result.path) as stream:
        hosts = stream.read().split()
    assert [hosts.count(h) for h in named(12, 13, 14)] == [32, 32, 16]
    cray = prepared("srun ./app", env, pattern="stencil:8x10", mpi=CRAY)
    assert not any("ntasks-per-node" in word for word in cray.launch.argv)
    assert cray.order.counts.tolist() == [32, 32, 16]
    wish = {"pattern": "stencil:8x10", "mpi": CRAY, "ppn": "16,32,32"}
    assert "block distribution does not yield" in refused("srun ./app", env, **wish)


def test_own_counts_follow_the_nodes_however_they_are_listed():
    env = JOB | {"SLURM_TASKS_PER_NODE": "32(x2),16", "SLURM_NTASKS": "80"}
    env |= {"SLURM_JOB_NODELIST": "nid[00012-00014]", "SLURM_JOB_CPUS_PER_NODE": "32(x2),16"}
    for mpi in (CRAY, OTHER):
        wish = {"pattern": "stencil:8x10", "mpi": mpi, "nodes": "nid[00014,00012,00013]"}
        assert prepared("srun ./app", env, **wish).order.counts.tolist() == [16, 32, 32]


def test_aprun_gets_candidates_counts_and_the_rank_order():
    machine = load_machine("torus:4x4x4")
    result = prepared("aprun -n 64 -N 16 ./app", {}, machine, nodes="12-15", dry_run=True)
    assert result.launch.argv == ("aprun", "-L", "12-15", "-n", "64", "-N", "16", "./app")
    assert result.launch.env["MPICH_RANK_REORDER_METHOD"] == "3"
    assert "a real run asks the launcher" in result.remarks[0]
    bare = prepared("aprun ./app", {}, machine, nodes="12-15", ppn="16", launcher_order="given")
    assert bare.launch.argv == ("aprun", "-n", "64", "-N", "16", "-L", "12-15", "./app")
    assert bare.remarks == []


def test_aprun_takes_the_nodes_of_its_own_list():
    machine = load_machine("torus:4x4x4")
    result = prepared("aprun -L 12-15 -n 64 -N 16 ./app", {}, machine, dry_run=True)
    assert result.launch.argv == ("aprun", "-L", "12-15", "-n", "64", "-N", "16", "./app")


def test_aprun_fills_its_last_node_with_the_rest():
    machine = load_machine("torus:4x4x4")
    wish = {"nodes": "12-15", "dry_run": True, "pattern": "stencil:5x10"}
    result = prepared("aprun -n 50 -N 16 ./app", {}, machine, **wish)
    assert result.order.counts.tolist() == [16, 16, 16, 2]
    assert "every node needs the same number of ranks" in refused(
        "aprun -n 50 ./app", {}, machine, **wish, ppn="16,2,16,16"
    )


@pytest.fixture
def aprun(here, monkeypatch):
    """Put an aprun on the PATH that lays its ranks out over nodes in an order of its own."""
    folder = here / "bin"
    folder.mkdir()

    def place(*hosts):
        lines = "".join(f"printf '\\nnidmap-rank {r} {host}\\n'\n" for r, host in enumerate(hosts))
        (folder / "aprun").write_text(
            f'#!/bin/sh\ncase "$*" in *nidmap-rank*) :;; *) exit 3;; esac\n{lines}'
        )
        (folder / "aprun").chmod(0o755)

    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return place


def test_aprun_is_asked_for_its_own_node_order(aprun):
    machine = load_machine("torus:4x4x4")
    aprun(*named(14, 14, 12, 12, 15, 15, 13, 13))
    wish = {"nodes": "12-15", "pattern": "stencil:2x4"}
    result = prepared("aprun -n 8 -N 2 ./app", dict(os.environ), machine, **wish)
    laid = slots(named(14, 12, 15, 13), 2)
    expected = arrange(slots(named(12, 13, 14, 15), 2), "stencil:2x4", "morton")
    assert (
        order_of(result, "mpich", laid, "given").host_of_rank.tolist()
        == expected.host_of_rank.tolist()
    )
    assert result.rank_nodes == laid.names[laid.node_of_rank].tolist()
    assert result.launch.argv == ("aprun", "-L", "12-15", "-n", "8", "-N", "2", "./app")


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        (named(12, 12, 13, 13), "4 of 8 ranks reported their node"),
        (named(12, 13, 14, 15, 12, 13, 14, 15), "does not fill its nodes one after"),
        (named(12, 12, 13, 13, 14, 14, 16, 16), "on nodes that are not in the plan"),
        ([], "0 of 8 ranks reported their node"),
    ],
)
def test_an_aprun_that_does_not_say_its_order_is_refused(aprun, hosts, says):
    aprun(*hosts)
    machine = load_machine("torus:4x4x4")
    wish = {"nodes": "12-15", "pattern": "stencil:2x4"}
    assert says in refused("aprun -n 8 -N 2 ./app", dict(os.environ), machine, **wish)


def test_an_aprun_that_hangs_is_given_up(aprun, here):
    aprun()
    (here / "bin" / "aprun").write_text("#!/bin/sh\nsleep 60\n")
    machine = load_machine("torus:4x4x4")
    wish = {"nodes": "12-15", "pattern": "stencil:2x4", "patience": 0.2}
    said = refused("aprun -n 8 -N 2 ./app", dict(os.environ), machine, **wish)
    assert "aprun did not answer in 0.2 s; give --launcher-order" in said


def test_a_step_of_fewer_nodes_is_put_on_the_first_and_says_so():
    result = prepared("srun -N 2 -n 16 ./app", pattern="stencil:4x4")
    assert result.order.names.tolist() == named(12, 13)
    assert result.order.counts.tolist() == [8, 8]
    assert any("first 2 of the job's 4 nodes" in remark for remark in result.remarks)
    one = prepared("srun -n 2 ./app", pattern="ring", mpi=CRAY)
    assert "--nodelist=nid[00012-00013]" in one.launch.argv


@pytest.mark.parametrize(
    ("line", "extra", "says"),
    [
        ("jsrun -n 64 ./app", {}, "unknown launcher 'jsrun'; choose from aprun"),
        ("/nowhere/mpirun -n 64 ./app", {}, "cannot start /nowhere/mpirun: No such file"),
        ("srun -n 32 ./app", {"SLURM_JOB_CPUS_PER_NODE": ""}, "is not known; give --ppn"),
        ("srun -n 32 ./app", {}, "but there are 32 slots (4 nodes x 8)"),
        ("srun -n 64 -w nid00012 ./app", {}, "srun -w overrides a host file"),
        ("srun -n 64 -m cyclic ./app", {}, "srun --distribution=cyclic places ranks itself"),
        ("srun -n 64 ./app", {"SLURM_DISTRIBUTION": "plane=4"}, "=plane=4 places ranks itself"),
        ("srun -n 64 ./app", {"SLURM_HOSTFILE": "mine"}, "SLURM_HOSTFILE places ranks itself"),
        ("srun -n 64 -r 1 ./app", {}, "srun -r places ranks itself"),
        ("srun -n 64 -x nid00012 ./app", {}, "srun -x places ranks itself"),
        ("srun -n 4 ./a : -n 60 ./b", {}, "several programs in one launch"),
        ("srun -n 64 ./app", {"SLURM_HET_SIZE": "2"}, "heterogeneous job"),
        ("srun -N 5 -n 64 ./app", {}, "5 nodes requested, but the job has 4"),
        ("srun -n 64 -c 4 ./app", {}, "16 ranks of 4 CPUs on nid00012, which has room for 8"),
        ("srun -N 2-4 -n 64 ./app", {}, "-N 2-4 is not a plain number"),
        ("srun --frobnicate a -n 64 ./nowhere", {}, "the word after --frobnicate is its value"),
        ("srun -n 64 ./app", {"SLURM_JOB_NODELIST": ""}, "this is not inside a job; use --nodes"),
        ("srun ./app", {"SLURM_NTASKS": ""}, "but there are 4 slots (4 nodes x 1)"),
        ("srun -c 4 ./app", {"SLURM_NTASKS": ""}, "the number of ranks is not known"),
        ("srun --multi-prog conf", {}, "srun --multi-prog starts several programs"),
        ("srun --het-group=1 ./app", {}, "which cannot share one order"),
        ("srun -n 64 ./app", {"SLURM_TASKS_PER_NODE": "16(x9)"}, "SLURM_TASKS_PER_NODE has 9"),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused_and_leaves_no_file(line, extra, says):
    assert says in refused(line, JOB | extra)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"pattern": ""}, "no --pattern given"),
        ({"pattern": "nonsense"}, "unknown pattern 'nonsense'"),
        ({"strategy": "nonsense"}, "unknown strategy 'nonsense'"),
        ({"nodes": "nid00099", "ppn": "64"}, "node nid00099 is not in the allocation"),
        ({"ppn": "8"}, "64 ranks requested, but 32 slots (4 nodes x 8)"),
        ({"order_dir": "/proc/nowhere"}, "cannot write the order file in /proc/nowhere"),
    ],
)
def test_wishes_that_cannot_be_met(wish, says):
    assert says in refused("srun -n 64 ./app", **wish)


@pytest.mark.parametrize(
    ("name", "value"), [("MPICH_RANK_REORDER_METHOD", "3"), ("MPICH_RANK_REORDER_FILE", "mine")]
)
def test_an_order_of_the_users_own_is_never_overridden(name, value):
    assert f"{name}" in refused("srun -n 64 ./app", JOB | {name: value}, mpi=CRAY)
    assert prepared("srun -n 64 ./app", JOB | {"MPICH_RANK_REORDER_METHOD": "1"}, mpi=CRAY)


def test_a_users_own_rank_order_file_is_not_touched(here):
    (here / "MPICH_RANK_ORDER").write_text("mine")
    result = prepared("srun -n 64 ./app", mpi=CRAY)
    assert (here / "MPICH_RANK_ORDER").read_text() == "mine"
    assert result.launch.env["MPICH_RANK_REORDER_FILE"] != str(here / "MPICH_RANK_ORDER")


def test_block_distributions_of_the_user_are_kept():
    for line in ("srun -m block:cyclic -n 64 ./app", "srun --distribution=block -n 64 ./app"):
        result = prepared(line, mpi=CRAY)
        assert sum("distribution" in word for word in result.launch.argv) == line.count(
            "distribution"
        )


def test_a_program_path_and_its_arguments_survive_the_shell():
    launch = Launch(("srun", "./my app", "a'b", "$HOME"), {"SLURM_HOSTFILE": "/tmp/a b/hosts"})
    words = shlex.split(launch.line())
    assert words == ["SLURM_HOSTFILE=/tmp/a b/hosts", "srun", "./my app", "a'b", "$HOME"]


def test_flux_starts_cray_mpich_in_blocks_alone():
    how = find("flux", CRAY)(shlex.split("flux run -n 8 ./app"), {})
    on = slots(named(1, 2), 4)
    assert how.launch(on.with_order(np.arange(8)), "f").argv[:2] == ("flux", "run")
    with pytest.raises(LaunchError, match="hangs in MPI_Init where Flux's task map is not block"):
        how.launch(on.with_order(np.arange(8)[::-1]), "f")


def test_a_launcher_of_another_distribution_is_found(monkeypatch):
    class Entry:
        name = "jsrun"

        def load(self):
            return type("Jsrun", (find("srun", OTHER),), {"__doc__": "jsrun"})

    monkeypatch.setattr("nidmap.placement.support.registry.entry_points", lambda group: [Entry()])
    monkeypatch.setattr(launchers, "known", dict(launchers.known))
    assert find("/opt/ibm/jsrun", CRAY).__name__ == "Jsrun"
    with pytest.raises(
        UsageError, match="unknown launcher 'jsrun2'; choose from aprun, flux, jsrun"
    ):
        find("jsrun2", OTHER)


POLARIS = {
    "SLURM_JOB_NODELIST": "nid[000001-000002]",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_JOB_CPUS_PER_NODE": "64(x2)",
    "SLURM_NTASKS": "8",
    "SLURM_JOB_ID": "4711",
}
BOUND = {"pattern": "stencil:2x4", "bind": True, "mpi": OTHER}


def on_polaris():
    machine = load_machine("polaris")
    names = ",".join(machine.names[machine.compute][:2].tolist())
    return machine, {**POLARIS, "SLURM_JOB_NODELIST": names}


def test_bound_ranks_have_the_cores_beside_their_gpus():
    machine, env = on_polaris()
    result = prepared("srun -n 8 ./app", env, machine, **BOUND)
    options = dict(word.split("=", 1) for word in result.launch.argv if word.startswith("--"))
    masks = options["--cpu-bind"].removeprefix("mask_cpu:").split(",")
    gpus = options["--gpu-bind"].removeprefix("map:").split(",")
    beside = {0xFF: "3", 0xFF00: "2", 0xFF0000: "1", 0xFF000000: "0"}
    assert [beside[int(mask, 16)] for mask in masks] == gpus
    assert result.launch.env["MPICH_OFI_NIC_POLICY"] == "USER"
    assert any(remark.startswith("inside the nodes") for remark in result.remarks)
    # Ranks are where they are without it, but for their places on a node.
    plain = prepared("srun -n 8 ./app", env, machine, **{**BOUND, "bind": False})
    assert result.order.host_of_rank.tolist() == plain.order.host_of_rank.tolist()


def says(here, name, text):
    """Put a program there that says a text whatever it is asked."""
    (here / name).write_text(f"#!/bin/sh\necho '{text}'\n")
    (here / name).chmod(0o755)
    return f"{here}/{name}"


def test_a_rankfile_binds_for_open_mpi(here):
    machine, env = on_polaris()
    mpirun = says(here, "mpirun", "mpirun (Open MPI) 5.0.11")
    result = prepared(f"{mpirun} -n 8 ./app", env, machine, **{**BOUND, "mpi": OPENMPI})
    with open(result.path) as stream:
        lines = stream.read().splitlines()
    assert {line.partition("slot=")[2] for line in lines} == {
        ",".join(map(str, range(8 * k, 8 * k + 8))) for k in range(4)
    }


@pytest.mark.parametrize(("ranks", "form"), [(8, "seq:file="), (128, "seq:OVERSUBSCRIBE:file=")])
def test_open_mpi_binds_ranks_that_fit_on_the_cores(here, ranks, form):
    machine, env = on_polaris()
    mpirun = says(here, "mpirun", "mpirun (Open MPI) 5.0.11")
    env |= {"SLURM_NTASKS": str(ranks), "SLURM_TASKS_PER_NODE": f"{ranks // 2}(x2)"}
    pattern = f"stencil:{ranks // 4}x4"
    result = prepared(f"{mpirun} -n {ranks} ./app", env, machine, pattern=pattern, mpi=OPENMPI)
    assert f"{form}{result.path}" in result.launch.argv


@pytest.mark.parametrize(("knows", "count"), [("--gpu-bind LIST", 2), ("nothing of GPUs", 1)])
def test_pals_is_told_of_gpus_where_it_takes_that(here, monkeypatch, knows, count):
    mpiexec = says(here, "mpiexec", knows)
    machine, env = on_polaris()
    wish = {**BOUND, "mpi": CRAY, "launcher_order": "sorted"}
    result = prepared(f"{mpiexec} -n 8 --ppn 4 ./app", env, machine, **wish)
    bound = [word for word in result.launch.argv if "-bind=list:" in word]
    assert bound[0] == "--cpu-bind=list:0-7:8-15:16-23:24-31"
    assert bound[1:] == ["--gpu-bind=list:3:2:1:0"][: count - 1]


@pytest.mark.parametrize(
    ("line", "changes", "why"),
    [
        (
            "srun --cpu-bind=cores -n 8 ./app",
            {},
            "binds ranks itself (--cpu-bind=cores)",
        ),
        (
            "./mpirun --bind-to core -n 8 ./app",
            {"mpi": OPENMPI},
            "itself (--bind-to core)",
        ),
        ("./mpiexec -machinefile h -n 8 ./app", {"mpi": INTEL}, "how intel binds ranks"),
    ],
)
def test_what_cannot_be_bound_is_left_alone(here, line, changes, why):
    machine, env = on_polaris()
    says(here, "mpirun", "mpirun (Open MPI) 5.0.11")
    says(here, "mpiexec", "Intel(R) MPI Library for Linux* OS, Version 2021.1")
    (here / "h").write_text("".join(f"{n}:4\n" for n in env["SLURM_JOB_NODELIST"].split(",")))
    env = {**env, "I_MPI_HYDRA_BOOTSTRAP": "ssh"}
    assert why in refused(line, env, machine, **{**BOUND, **changes})


def test_a_job_with_a_part_of_its_nodes_is_not_bound():
    machine, env = on_polaris()
    said = refused("srun -n 8 ./app", {**env, "SLURM_JOB_CPUS_PER_NODE": "8(x2)"}, machine, **BOUND)
    assert "the job has only 8 of a node's 32 cores" in said
    torus = load_machine("torus:4x4")
    names = {**env, "SLURM_JOB_NODELIST": "nid[00001-00002]"}
    assert "is not known" in refused("srun -n 8 ./app", names, torus, **BOUND)


HYDRA = "HYDRA build details:\n    Version:  5.0.2"


@pytest.mark.parametrize(
    ("lines", "ranks", "strategy", "own"),
    [
        ("a b a b", 4, "auto: row-major", 3),
        ("a a b b", 4, "auto: row-major", 1),
        ("a:2 b:2", 4, "auto: row-major", 1),
        ("a b c", 5, "auto: row-major", 4),
        ("a b", 2, "auto: row-major", 1),
    ],
)
def test_the_default_of_hydra_is_what_its_host_file_says(here, lines, ranks, strategy, own):
    mpiexec = says(here, "mpiexec", HYDRA)
    (here / "hosts").write_text("\n".join(lines.split()))
    line = f"{mpiexec} -f hosts -n {ranks} ./app"
    result = prepared(line, {}, pattern=f"stencil:{ranks}", strategy="auto")
    figures = result.order.origin.optimised
    assert (result.order.origin.strategy, figures["default_cost"]) == (strategy, own)
    assert figures["cost"] == len(set(result.order.names.tolist())) - 1
    assert ("where the host file puts the ranks" in result.words) == (figures["cost"] < own)


def test_hydras_own_order_is_kept_where_none_is_better(here):
    """Ranks 0 and 2 talk, and 1 and 3: turns are the best that there is."""
    mpiexec = says(here, "mpiexec", HYDRA)
    (here / "hosts").write_text("a\nb\na\nb\n")
    (here / "pairs.csv").write_text("0,0,9,0\n0,0,0,9\n9,0,0,0\n0,9,0,0\n")
    wish = {"pattern": "matrix:pairs.csv", "strategy": "auto"}
    result = prepared(f"{mpiexec} -f hosts -n 4 ./app", {}, **wish)
    assert result.order.host_of_rank.tolist() == ["a", "b", "a", "b"]
    assert "the ranks stay where the host file puts them" in result.words
    assert "default order is kept" not in result.words


def test_a_node_file_of_the_mom_alone_is_said(here):
    (here / "hosts").write_text("nid00003\n")
    env = {"PBS_NODEFILE": str(here / "hosts"), "PBS_JOBID": "1.s"}
    said = refused("aprun -n 48 -N 24 ./app", env, pattern="ring")
    assert "does not list all of this job's compute nodes" in said


@pytest.mark.parametrize("option", ["ifhn=a-ib", "binding=rr", "user=me"])
def test_what_an_order_file_would_lose_is_refused(here, option):
    """Hydra's file may name another interface of a host: the order's own file would not."""
    mpiexec = says(here, "mpiexec", HYDRA)
    (here / "hosts").write_text(f"# ifhn=no\na:2 {option}\nb:2\n")
    said = refused(f"{mpiexec} -f hosts -n 4 ./app", {}, pattern="ring")
    assert f"hosts:2: '{option}' would be lost: an order names only hosts" in said
