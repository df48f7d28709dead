# SPDX-License-Identifier: Apache-2.0
"""Mini-Crays that stand: what runs in them, what the links carry, and that nothing is left."""

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks.experiment.cases import Case
from benchmarks.experiment.cluster import Cluster
from benchmarks.experiment.counted import expected_bytes
from benchmarks.experiment.running import measure_case
from nidmap import Job, load_machine, predict
from nidmap.placement.lookup import find_rows
from nidmap.placement.network import Demand
from nidmap.placement.traffic import Traffic
from nidmap.web.measured import measured
from nidmap.workloads.minicray.daemon import HOME
from nidmap.workloads.minicray.net import MTU, wire_factor
from nidmap.workloads.minicray.slurm import find_slurm
from tests.rankmap.mpis import with_mpi4py
from tests.waiting import HANGS, wait_until
from tests.workloads.minicray.conftest import DRAGONFLY, host, leftovers, new_name, nidmap

pytestmark = pytest.mark.minicray

needs_slurm = pytest.mark.skipif(find_slurm()[0] is None, reason=f"Slurm: {find_slurm()[1]}")

RANKS = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD; "
    "print(f'{c.rank} {c.size} {MPI.Get_processor_name()}\\n', end='', flush=True)"
)

#: Sends so many bytes from one node to another over the fabric, without MPI.
SEND = """
import socket, sys
role, address, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if role == "to":
    with socket.create_server((address, 4711)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        while connection.recv(1 << 16):
            pass
else:
    with socket.create_connection((address, 4711)) as connection:
        connection.sendall(bytes(count))
"""


@pytest.fixture(scope="module")
def bare(minicray):
    """Return a mini-Cray without Slurm."""
    return minicray("-m", DRAGONFLY, "--topology=off")


@pytest.fixture(scope="module")
def whole(minicray):
    """Return a mini-Cray with Slurm."""
    if find_slurm()[0] is None:
        pytest.skip(find_slurm()[1])
    return minicray("-m", DRAGONFLY)


def ask(name, *words):
    """Return the answer of a command as JSON."""
    return json.loads(nidmap("minicray", *words, "--name", name, "--json").stdout)


def run(name, *words, check=True, **more):
    """Run a command inside."""
    return nidmap("minicray", "run", "--name", name, "--", *words, check=check, **more)


def mpi(flavour):
    """Return the environment of an MPI, and its Python; skip where there is none."""
    places = [place for name, place in with_mpi4py() if name == flavour]
    if not places:
        pytest.skip(f"no mpi4py on {flavour}")
    path = f"{places[0]}/bin:{os.environ['PATH']}"
    return {**os.environ, "PATH": path}, f"{places[0]}/bin/python"


def test_a_program_has_the_callers_files_signals_and_code(bare):
    done = run(bare, "sh", "-c", "cat; echo err >&2; exit 7", check=False, stdin=None, input="in")
    assert (done.stdout, done.stderr, done.returncode) == ("in", "err\n", 7)
    assert run(bare, "sh", "-c", "kill -9 $$", check=False).returncode == 137
    done = run(bare, "no-such-program", check=False)
    assert (done.returncode, done.stderr) == (4, "nidmap: no-such-program: no such program\n")


def test_programs_are_told_how_packets_go(bare):
    said = run(bare, "sh", "-c", 'echo "$NIDMAP_MACHINE"').stdout
    assert ",routing=single,process=inf" in said
    found = run(bare, sys.executable, "-m", "nidmap", "predict", "--nodes", "0-7", "--json",
                "--pattern", "alltoall")  # fmt: skip
    assert json.loads(found.stdout)["routing"] == "single"


def test_the_page_shows_of_each_link_what_its_prediction_says_round_by_round(bare, tmp_path):
    """Headers and answers are 1.5 %, and what MPI adds to start, agree and check is less."""
    rows, size, repeat = [1, 3, 6, 9, 12, 15, 18, 23], 100_000, 5
    nodes = ",".join(f"nid{row:05d}" for row in rows)
    bench = [sys.executable, "-m", "nidmap", "bench", "alltoall", "--bytes", str(size)]
    ask(bare, "links", "--zero")
    nidmap("minicray", "run", "--name", bare, "-w", nodes, "--", *bench, "--repeat", str(repeat))
    path = tmp_path / "links.json"
    path.write_text(nidmap("minicray", "links", "--name", bare, "--json").stdout)
    machine = load_machine(DRAGONFLY)
    loads = predict(machine, np.array(rows), Job("alltoall", bytes=size)).loads
    shown = measured(machine, [str(path)], len(loads.load)).links
    rounds = (1 + repeat) * wire_factor(MTU)  # the first is a warm-up
    carried = dict(zip(shown.name, shown.load, strict=True))
    judged = np.flatnonzero(loads.load)
    assert len(judged) > 20
    counted = [carried[name] for name in loads.channels.names(judged).tolist()]
    assert counted == pytest.approx((rounds * loads.load[judged]).tolist(), rel=0.03)
    assert shown.total - len(judged) <= 4, "links of agreements alone"
    assert sum(shown.load) - sum(counted) < 1e-4 * sum(counted)


def test_links_carry_what_is_predicted_headers_accounted_for(bare):
    about = ask(bare, "status")
    a, b = "nid00001", "nid00022"
    to = about["addresses"][about["names"].index(b)]
    count = 400_000
    ask(bare, "links", "--zero")
    helper = (
        "import sys; from nidmap.workloads.minicray.client import run;"
        " sys.exit(run(*eval(sys.argv[1])))"
    )
    on = str(HOME / "on")
    words = [bare, [on, b, sys.executable, "-c", SEND, "to", to, str(count)]]
    with subprocess.Popen(
        [sys.executable, "-c", helper, repr(words)], stdout=subprocess.PIPE
    ) as there:
        assert there.stdout.readline() == b"ready\n"
        words = [bare, [on, a, sys.executable, "-c", SEND, "from", to, str(count)]]
        subprocess.run([sys.executable, "-c", helper, repr(words)], check=True)
    counted = {link: row["bytes"] for link, row in ask(bare, "links")["links"].items()}
    machine = load_machine(*about["machine"])
    sent = Traffic.of(*(find_rows(machine.names, np.array([name])) for name in (a, b)), count)
    names, payload, _ = expected_bytes(machine, Demand.of(machine, sent), "single", MTU)
    ways = [link for link, some in zip(names.tolist(), payload.tolist(), strict=True) if some]
    assert f"{a} injection" in ways
    assert f"{b} ejection" in ways
    assert len(ways) >= 3
    for link in ways:
        assert 1.007 < counted[link] / count < 1.015  # 66 bytes of each 9014 are headers
    acknowledged = sum(some for link, some in counted.items() if link not in ways)
    assert acknowledged < 0.05 * count * len(ways)


def test_ranks_sit_where_they_should_without_slurm(bare):
    env, python = mpi("mpich")
    words = ["minicray", "run", "--name", bare, "-w", "nid00003,nid00010", "-n", "4", "--"]
    said = nidmap(*words, python, "-c", RANKS, env=env).stdout.split()
    where = dict(zip(said[0::3], said[2::3], strict=True))
    assert where == {"0": "nid00003", "1": "nid00003", "2": "nid00010", "3": "nid00010"}


def test_ranks_that_send_nothing_over_the_links_are_remarked(bare):
    env, python = mpi("mpich")
    talk = "from mpi4py import MPI; MPI.COMM_WORLD.allreduce(1)"
    for nodes, program, remarked in (("2", "pass", True), ("2", talk, False), ("1", talk, False)):
        words = ["minicray", "run", "--name", bare, "-N", nodes, "--", python, "-c", program]
        said = nidmap(*words, env=env).stderr
        assert ("sent no byte over the links" in said) == remarked, (program, said)


def test_a_node_sees_its_own_devices_and_what_a_user_sets_stays(bare):
    script = "ls /sys/class/net; echo $UCX_NET_DEVICES $OMPI_MCA_btl"
    env = {**os.environ, "OMPI_MCA_btl": "mine"}
    words = ["run", "--name", bare, "-n", "2", "--", "sh", "-c", script]
    said = nidmap("minicray", *words, env={**mpi("mpich")[0], **env}).stdout.split()
    assert said.count("mgmt0") == 2, "no /sys of the node's own"
    assert said.count("hsn0") == 4
    assert said.count("mine") == 2


@needs_slurm
@pytest.mark.slurm
@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_ranks_sit_where_slurm_puts_them(whole, flavour):
    env, python = mpi(flavour)
    words = ["minicray", "run", "--name", whole, "-N", "3", "--", python, "-c", RANKS]
    said = nidmap(*words, env=env).stdout.splitlines()
    assert sorted(said) == ["0 3 nid00000", "1 3 nid00001", "2 3 nid00002"]
    words[words.index("--") : words.index("--")] = ["-n", "6"]
    said = nidmap(*words, env=env).stdout.splitlines()
    assert sorted(line.split()[2] for line in said) == sorted(2 * [f"nid0000{k}" for k in range(3)])


@needs_slurm
@pytest.mark.slurm
def test_the_whole_product_works_inside(whole):
    python = [sys.executable, "-m", "nidmap"]
    run(whole, "salloc", "--no-shell", "--exclusive", "-w", "nid[00000-00003]", "-J", "other")
    planned = run(whole, *python, "plan", "--from", "idle", "-N", "4", "--strategy", "compact")
    assert planned.stdout.strip() == "nid[00004-00007]"
    assert f"{whole}: {DRAGONFLY}" in run(whole, *python, "minicray", "status").stdout
    assert "4  alloc" in run(whole, "sinfo").stdout
    run(whole, "scancel", "-u", "root")


@needs_slurm
@pytest.mark.slurm
def test_a_program_is_launched_in_both_orders(whole, tmp_path):
    (tmp_path / "odd.slots").write_text("2\n0\n1\n")
    words = ["--order", "odd.slots", "--blocks", "1", "--warmup", "0", "--json", "--"]
    ab = [sys.executable, "-m", "nidmap", "ab", *words, "srun", "-n", "3", "true"]
    job = ["salloc", "-Q", "-N", "3", "-w", "nid[00004-00006]", *ab]
    for _ in range(3):  # a slurmd on a busy machine may refuse a step
        done = run(whole, *job, check=False, cwd=tmp_path)
        if not done.returncode:
            break
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hosts"] == ["nid00004", "nid00005", "nid00006"]
    assert [entry["samples"] for entry in found["times"]] == [1, 1]
    assert os.listdir(tmp_path / found["folder"]).count("samples.csv") == 1


@needs_slurm
@pytest.mark.slurm
@pytest.mark.mpi
def test_a_case_of_the_experiment_from_slurms_choice_to_figures(whole, tmp_path):
    if mpi("mpich")[1] != sys.executable:
        pytest.skip("this Python's MPI is not MPICH")
    case = Case(
        "little", DRAGONFLY, "alltoall", ("bytes=20000", "inner=1"), "alltoall", 20e3,
        nodes=4, ppn=1, held=12, others=(),
    )  # fmt: skip
    cluster = Cluster(whole)
    found = measure_case(cluster, case, load_machine(DRAGONFLY), 1, 6, tmp_path)
    cluster.free()
    assert [arm["arm"] for arm in found["arms"]] == ["slurm", "nidmap", "slurm again"]
    assert found["free"] >= 12
    for arm in found["arms"]:
        assert arm["measured_s"] > 0
        assert (arm["low"] or 0) <= arm["ratio"] <= (arm["high"] or math.inf)  # None: noise alone
        # Every byte is there, and what barriers add is little.
        assert all(link["counted"] > 0.99 * link["predicted"] for link in arm["links"])
        assert arm["link_error"] < 0.05


def test_two_stand_side_by_side_and_a_name_is_taken_once(bare, minicray):
    before = host()
    other = minicray("-m", "minicray:torus", "--topology=off")
    again = nidmap(
        "minicray", "up", "-m", DRAGONFLY, "--topology=off", "--name", other, check=False
    )
    assert (again.returncode, "is already running" in again.stderr) == (2, True)
    assert ask(bare, "status")["nodes"] == 24
    assert ask(other, "status")["nodes"] == 18
    nidmap("minicray", "down", "--name", other)
    assert nidmap("minicray", "status", "--name", other, check=False).returncode == 4
    assert host() == before
    assert leftovers(other) == []


def test_one_for_a_command_alone_is_gone_after_it():
    before = host()
    words = ["minicray", "run", "-m", "minicray:fattree", "--topology=off", "--", "sh", "-c"]
    done = nidmap(*words, "hostname; echo $NIDMAP_MINICRAY; exit 3", check=False)
    where, name = done.stdout.split()
    assert (where, done.returncode) == ("login", 3)
    assert leftovers(name) == []
    assert host() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_in_the_foreground_it_goes_with_its_command(number):
    name = new_name()
    with standing(name, "--foreground") as process:
        nidmap("minicray", "run", "--name", name, "--", "true")
        process.send_signal(number)
        process.wait(HANGS)
    assert leftovers(name) == []
    assert nidmap("minicray", "status", "--name", name, check=False).returncode == 4


def test_a_command_ends_with_its_client_and_all_that_it_started(bare):
    mark = f"NIDMAP_TEST={new_name()}"
    script = "setsid sleep 1000 & sleep 1000"
    command = [sys.executable, "-m", "nidmap", "minicray", "run", "--name", bare, "--", "env", mark]
    with subprocess.Popen([*command, "sh", "-c", script], start_new_session=True) as process:
        wait_until(lambda: any("sleep" in line for line in with_word(mark)))
        process.kill()
    wait_until(lambda: not list(with_word(mark)))


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_at_any_moment_leaves_nothing(seed):
    rng = random.Random(seed)
    name, before = new_name(), host()
    with standing(name, *rng.choice([(), ("--foreground",)]), wait=False) as process:
        kill_one(rng, process, 0.8)
    nidmap("minicray", "down", "--name", name, check=False)  # where it stood and was let go
    assert leftovers(name) == []
    assert host() == before


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_of_a_run_with_its_own_leaves_nothing(seed):
    rng = random.Random(seed)
    before = host()
    words = [
        "minicray",
        "run",
        "-m",
        "minicray:fattree",
        *rng.choice([(), ("--topology=off",)]),
        "-N2",
    ]
    command = [sys.executable, "-m", "nidmap", *words, "--", "sleep", "5"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        kill_one(rng, process, 1.5)
    assert leftovers(f"run-{process.pid}") == []
    assert host() == before


def kill_one(rng, process, longest):
    """Kill a process of a command's tree at some moment, then the command."""
    time.sleep(rng.random() * longest)
    with contextlib.suppress(ProcessLookupError):  # one that has just ended by itself
        os.kill(rng.choice([process.pid, *children(process.pid)]), signal.SIGKILL)
    time.sleep(0.1)
    process.kill()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -9 $PPID", "the daemon was ended by SIGKILL (out of memory?)"),
        ("kill -TERM $PPID", "the daemon was ended by SIGTERM"),
        ("exit 1", "ip: failed"),
    ],
)
def test_every_end_says_why(tmp_path, script, said):
    ip = tmp_path / "ip"
    ip.write_text(f"#!/bin/sh\n{script}\nsleep 1\n")
    ip.chmod(0o755)
    done = refused({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 4
    assert done.stderr == f"nidmap: the mini-Cray cannot be built: {said}\n"


def test_an_end_from_outside_says_why(tmp_path):
    ip = tmp_path / "ip"
    building = tmp_path / "building"
    ip.write_text(f"#!/bin/sh\ntouch {building}\nsleep 30\n")
    ip.chmod(0o755)
    with standing(new_name(), wait=False, path=tmp_path) as process:
        while not building.exists():  # before that there are children that only look around
            time.sleep(0.02)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        said = process.stderr.read()
    assert said.startswith("nidmap: the mini-Cray cannot be built: it was ended by signal 9")


def test_without_any_capability_it_stands_as_well():
    """As a user does who is not root: in a user namespace."""
    plain = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*plain, "unshare", "--map-root-user", "true"]).returncode:
        pytest.skip("no user namespaces here")
    before = host()
    words = ["minicray", "run", "-m", "minicray:torus", "-w", "nid00004", "--", "hostname"]
    command = [*plain, sys.executable, "-m", "nidmap", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "nid00004\n"), done.stderr
    assert "Slurm: left out: " in done.stderr
    assert host() == before


def test_a_kernel_without_token_buckets_is_named(tmp_path):
    tc = tmp_path / "tc"
    tc.write_text("#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n")
    tc.chmod(0o755)
    done = refused({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 4
    assert "this kernel has no tbf" in done.stderr
    assert done.stderr.count("\n") == 1


def test_forbidden_namespaces_are_named(tmp_path):
    unshare = tmp_path / "unshare"
    unshare.write_text(
        "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n"
    )
    unshare.chmod(0o755)
    done = refused({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 4
    assert "user namespaces are switched off here" in done.stderr


def test_really_forbidden_namespaces_are_named():
    """A process without any capability, below a limit of no namespaces."""
    script = (
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "
        '--inh-caps=-all "$@"'
    )
    words = [sys.executable, "-m", "nidmap", "minicray", "up", "--name", new_name()]
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *words]
    done = subprocess.run(
        [*command, "-m", DRAGONFLY, "--topology=off"], capture_output=True, text=True
    )
    if "setpriv" in done.stderr or "max_user_namespaces" in done.stderr.split("nidmap:")[0]:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 4
    assert "user namespaces are switched off here" in done.stderr


def refused(env):
    """Try to build one in an environment where it cannot be; nothing may be left."""
    name, before = new_name(), host()
    words = ["minicray", "up", "-m", DRAGONFLY, "--topology=off", "--name", name]
    done = nidmap(*words, check=False, env={**os.environ, **env})
    assert leftovers(name) == []
    assert host() == before
    return done


class standing:  # noqa: N801  # used as a function
    """A mini-Cray whose command is a process of the test's own."""

    def __init__(self, name, *words, wait=True, path=None):
        command = [sys.executable, "-m", "nidmap", "minicray", "up", "-m", "minicray:torus"]
        self.words = [*command, "--topology=off", "--name", name, *words]
        self.wait = wait
        self.env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stderr=subprocess.PIPE, text=True, env=self.env)
        if self.wait:
            assert self.process.stderr.readline().startswith("mini-Cray")
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


def children(pid):
    """Return the ids of all processes below one."""
    found = []
    for task in _listed(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as stream:
                own = [int(word) for word in stream.read().split()]
        except OSError:
            continue
        found += own + [below for child in own for below in children(child)]
    return found


def _listed(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def with_word(word):
    """Yield the command lines of processes that have a word in their environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                env = stream.read().decode(errors="replace").split("\0")
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                line = stream.read().decode(errors="replace")
        except OSError:
            continue
        if word in env and line:
            yield line
