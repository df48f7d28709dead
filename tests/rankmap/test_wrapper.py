# SPDX-License-Identifier: Apache-2.0
"""``nidmap run`` never costs a user their job, and leaves no trace in it.

A stand-in for srun prints what it got; each run is a process of its own.
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nidmap.placement.placement import Origin
from nidmap.rankmap.emit import emit, format_of
from tests.rankmap.helpers import named, slots
from tests.waiting import HANGS, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))

#: Prints arguments, variables, open descriptors and stdin, as JSON.
SRUN = f"""#!{sys.executable} -IS
import json, os, signal, sys, time
FD = "/proc/self/fd/"
seen = {{
    "argv": sys.argv[1:],
    "env": {{k: v for k, v in os.environ.items() if k != "_"}},
    "fds": sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.exists(FD + fd)),
    "stdin": sys.stdin.read() if "--stdin" in sys.argv else "",
}}
print(json.dumps(seen), flush=True)
if "--hosts" in sys.argv:
    print(open(os.environ["NIDMAP_LAUNCH"]).read())
if "--rc" in sys.argv:
    sys.exit(int(sys.argv[-1]))
if "--die" in sys.argv:
    os.kill(os.getpid(), int(sys.argv[-1]))
if "--wait" in sys.argv:
    print("ready", flush=True)
    while True:  # a signal just before one long sleep would be noticed after it
        time.sleep(0.05)
"""

#: For what Python itself would change before it could look.
SIGNALS = "#!/bin/sh\nexec grep SigIgn /proc/self/status\n"
VARIABLES = "#!/bin/sh\nexec cat /proc/self/environ\n"

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/"),
    "PYTHONPATH": ROOT,
    "SLURM_JOB_NODELIST": "nid[00012-00015]",
    "SLURM_TASKS_PER_NODE": "4(x4)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "4711",
    "SLURM_CPU_BIND": "cores",
    "SLURM_MPI_TYPE": "none",
}
#: What is said of the order that RUN takes.
SAID = (
    "nidmap: morton order of stencil:4x4 on 4 nodes x 4; its gain is not known:"
    " no machine is named\n"
)
RUN = [sys.executable, "-m", "nidmap", "run", "--pattern", "stencil:4x4", "--strategy", "morton"]


@pytest.fixture
def srun(tmp_path):
    """Put the stand-in on the PATH of a private directory."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "srun").write_text(SRUN)
    (folder / "srun").chmod(0o755)
    return folder


def call(srun, *words, options=(), env=None, wrapped=True, cwd=None, **more):
    """Run the stand-in, wrapped by nidmap or bare, and return the finished process."""
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}", **(env or {})}
    command = ["srun", "-n", "16", "./app", *words]
    prefix = [*RUN, *options, "--"] if wrapped else []
    work = cwd or srun.parent
    return subprocess.run(
        [*prefix, *command],
        env=given,
        cwd=work,
        capture_output=True,
        text=True,
        timeout=600,
        **more,
    )


def test_the_program_gets_the_same_as_from_a_bare_launch(srun):
    bare = call(srun, "--stdin", input="a\nb", wrapped=False)
    wrapped = call(srun, "--stdin", input="a\nb")
    assert (wrapped.returncode, wrapped.stderr) == (0, SAID)
    one, other = json.loads(bare.stdout), json.loads(wrapped.stdout)
    path = other["env"].pop("NIDMAP_LAUNCH")
    ours, other["argv"] = other["argv"][:2], other["argv"][2:]
    assert ours == [f"--nodelist={path}", "--distribution=arbitrary"]
    assert other == one


def test_a_value_that_is_no_utf8_arrives_unchanged(srun):
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}"}
    given = {os.fsencode(k): os.fsencode(v) for k, v in given.items()} | {b"ODD": b"\xff\xfe"}
    out = subprocess.check_output(
        [*RUN, "--", "srun", "-n", "16", "./app"], env=given, cwd=srun.parent
    )
    assert json.loads(out)["env"]["ODD"] == "\udcff\udcfe"


@pytest.mark.parametrize(
    ("script", "locale"),
    [
        (SIGNALS, {}),
        (VARIABLES, {}),
        (VARIABLES, {"LANG": "C"}),
        (VARIABLES, {"LC_ALL": "C"}),
        (VARIABLES, {"LC_CTYPE": "C.UTF-8"}),
    ],
)
def test_what_python_does_to_its_process_is_undone(srun, script, locale):
    (srun / "srun").write_text(script)
    given = {**ENV, **locale, "PATH": f"{srun}:{ENV['PATH']}"}
    bare, wrapped = (
        subprocess.check_output([*prefix, "srun", "-n", "16"], env=given, cwd=srun.parent)
        for prefix in ([], [*RUN, "--"])
    )
    added = [line for line in wrapped.split(b"\0") if line.startswith(b"NIDMAP_LAUNCH=")]
    left = [line for line in wrapped.split(b"\0") if line not in added]
    assert sorted(left) == sorted(bare.split(b"\0"))


@pytest.mark.parametrize("code", [0, 3, 125])
def test_the_exit_code_is_the_programs(srun, code):
    assert call(srun, "--rc", str(code)).returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1])
def test_a_death_by_signal_is_the_programs(srun, number):
    assert call(srun, "--die", str(int(number))).returncode == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_to_the_wrapper_reaches_the_program(srun, number):
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}"}
    with subprocess.Popen(
        [*RUN, "--", "srun", "-n", "16", "--wait"], env=given, cwd=srun.parent,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        process.stdout.readline()
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(HANGS) in (-number, 1 if number == signal.SIGINT else -number)


def test_the_order_file_is_private_and_says_the_order(srun):
    done = call(srun, "--hosts", options=("--order-dir", str(srun.parent)))
    path = json.loads(done.stdout.splitlines()[0])["env"]["NIDMAP_LAUNCH"]
    hosts = done.stdout.split("\n")[1:17]
    assert [hosts.count(name) for name in named(12, 13, 14, 15)] == [4, 4, 4, 4]
    assert hosts[:4] == named(12, 12, 13, 13)
    assert os.path.dirname(os.path.dirname(path)) == str(srun.parent)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


#: Comes before an order file: RUN names a strategy, which excludes one.
ORDER = ("--strategy", "auto", "--order")

#: What may go wrong around a wrapper: options and variables, ``{here}`` being a private directory.
FAULTS = {
    "a library is missing": ([], {"PYTHONPATH": f"{{here}}/broken:{ROOT}"}),
    "the site file is corrupt": (["-m", "{here}/corrupt.toml"], {}),
    "the machine is unknown": (["-m", "atlantis"], {}),
    "the file system hangs": (["-m", "{here}/hanging"], {}),
    "the node list is unreadable": ([], {"SLURM_JOB_NODELIST": "nid[00012-"}),
    "there is no allocation": ([], {"SLURM_JOB_NODELIST": ""}),
    "the job contradicts itself": ([], {"SLURM_TASKS_PER_NODE": "5(x7)"}),
    "the pattern does not fit": (["--pattern", "stencil:5x5"], {}),
    "the strategy is unknown": (["--strategy", "magic"], {}),
    "the order file has no place": (["--order-dir", "/dev/null/missing"], {}),
    "the user has an order already": ([], {"SLURM_HOSTFILE": "mine"}),
    "the process is killed": ([], {"PYTHONPATH": f"{{here}}/killed:{ROOT}"}),
    "a library crashes": ([], {"PYTHONPATH": f"{{here}}/crash:{ROOT}"}),
    "a library runs for ever": ([], {"PYTHONPATH": f"{{here}}/busy:{ROOT}"}),
    "a library sleeps": ([], {"PYTHONPATH": f"{{here}}/asleep:{ROOT}"}),
    "a library leaves": ([], {"PYTHONPATH": f"{{here}}/leaves:{ROOT}"}),
    "a library talks": (["--pattern", "stencil:5x5"], {"PYTHONPATH": f"{{here}}/talks:{ROOT}"}),
    "the site file is a directory": (["-m", "{here}"], {}),
    "the site file has no end": (["-m", "/dev/zero"], {}),
    "the machine is a terminal's": (["-m", "/dev/tty"], {}),
    "the node file hangs": (["--nodes", "@{here}/hanging"], {}),
    "the node list is standard input": (["--nodes", "-"], {}),
    "the nodes are not the job's": (["--nodes", "nid00099"], {}),
    "the ranks a node are not numbers": (["--ppn", "four"], {}),
    "the ranks a node are not the job's": (["--ppn", "3"], {}),
    "there is no pattern": (["--pattern", "magic"], {}),
    "the pattern's file hangs": (["--pattern", "graph:{here}/hanging"], {}),
    "the pattern's file is missing": (["--pattern", "matrix:{here}/nothing.npz"], {}),
    "the order file is on a device": (["--order-dir", "/dev/null"], {}),
    "the order file is in /proc": (["--order-dir", "/proc"], {}),
    "the job is heterogeneous": ([], {"SLURM_HET_SIZE": "2"}),
    "the number of ranks is none": ([], {"SLURM_NTASKS": "many", "SLURM_NPROCS": "\x1b[31m"}),
    "the node list is huge": ([], {"SLURM_JOB_NODELIST": "nid[1-999999999]"}),
    "the node list is deep": ([], {"SLURM_JOB_NODELIST": "n" + "[1-9" * 60}),
    "the compiler runs for ever": (
        ["--pattern", "graph:{here}/dense.graph", "--strategy", "graph"],
        {"PYTHONPATH": f"{{here}}/compiler:{ROOT}"},
    ),
    "the job spreads its ranks": ([], {"SLURM_DISTRIBUTION": "cyclic"}),
    "the order is missing": ([*ORDER, "{here}/none.json"], {}),
    "the order is a matter of guessing": ([*ORDER, "{here}/corrupt.toml"], {}),
    "the order is broken": ([*ORDER, "{here}/broken.slots"], {}),
    "the order is for others": ([*ORDER, "{here}/other.json"], {}),
    "the order is for more": ([*ORDER, "{here}/more.hosts"], {}),
    "the order is standard input": ([*ORDER, "-"], {}),
    "the order has a strategy": (["--order", "{here}/none.json"], {}),
}

#: What stands in a module that planning imports.
MODULES = {
    "broken": "raise ImportError('damaged')",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "import os; os.abort()",
    "busy": "while True: pass",
    "asleep": "import time; time.sleep(60)",
    "leaves": "import os; os._exit(7)",
    "talks": "import sys; print('noise'); print('noise', file=sys.stderr); raise ImportError('x')",
}


@pytest.fixture
def faulty(tmp_path):
    """Fill a directory with what does not work."""
    folder = tmp_path / "faulty"
    for kind, text in MODULES.items():
        (folder / kind / "numpy").mkdir(parents=True)
        (folder / kind / "numpy" / "__init__.py").write_text(text)
    (folder / "corrupt.toml").write_bytes(b"\x00\xff garbage [[[")
    (folder / "compiler" / "numba").mkdir(parents=True)
    (folder / "compiler" / "numba" / "__init__.py").write_text(MODULES["busy"])
    # All pairs, with weights that leave too many orders to look at: it has to be mapped.
    rows = [
        [f"{b + 1} {(a + 1) * (b + 1) * 7 % 13 + 1}" for b in range(16) if b != a]
        for a in range(16)
    ]
    lines = ["16 120 1", *map(" ".join, rows)]
    (folder / "dense.graph").write_text("\n".join(lines) + "\n")
    os.mkfifo(folder / "hanging")
    (folder / "broken.slots").write_text("0\n" * 16)
    other = {"nodes": named(1, 2, 3, 4), "counts": [4] * 4, "slots": list(range(16))}
    (folder / "other.json").write_text(json.dumps(other))
    (folder / "more.hosts").write_text("nid00012\n" * 17)
    return folder


def filled(what, faulty):
    options, env = FAULTS[what]
    options = [word.format(here=faulty) for word in options]
    return options, {name: value.replace("{here}", str(faulty)) for name, value in env.items()}


#: Faults that are met four at once, as on a busy login node; all others are met alone.
AT_ONCE = list(FAULTS)[::6]


def check_that_it_starts(srun, faulty, what):
    options, env = filled(what, faulty)
    done = call(srun, options=options, env=env)
    seen = json.loads(done.stdout)
    assert done.returncode == 0
    assert seen["argv"] == ["-n", "16", "./app"]
    assert seen["env"].get("SLURM_HOSTFILE") == env.get("SLURM_HOSTFILE")
    assert "NIDMAP_LAUNCH" not in seen["env"]
    assert done.stderr.count("\n") == 1
    assert re.fullmatch(r"nidmap: .*\w{3}.*: default order\n", done.stderr)  # the reason has words


@pytest.mark.parametrize("what", [what for what in FAULTS if what not in AT_ONCE])
def test_whatever_goes_wrong_the_program_starts_and_one_line_says_why(srun, faulty, what):
    check_that_it_starts(srun, faulty, what)
    assert not [p for p in srun.parent.iterdir() if p.name.startswith("nidmap-")]


@pytest.mark.slow
def test_faults_at_once_and_all_programs_start(srun, faulty):
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda what: check_that_it_starts(srun, faulty, what), AT_ONCE):
            pass
    assert not [p for p in srun.parent.iterdir() if p.name.startswith("nidmap-")]


#: A fault of each kind: of the planning process's end, of time, of a file, of a word, of the job.
EACH_KIND = [
    "the process is killed", "the node file hangs", "the site file is corrupt",
    "the strategy is unknown", "the job is heterogeneous", "the order file has no place",
]  # fmt: skip


@pytest.mark.parametrize("what", EACH_KIND)
def test_whatever_goes_wrong_nothing_is_started_under_strict(srun, faulty, what):
    options, env = filled(what, faulty)
    strict = call(srun, options=[*options, "--strict"], env=env)
    assert (strict.returncode, strict.stdout) == (125, "")
    assert strict.stderr.endswith(": not started (--strict)\n")
    assert not [p for p in srun.parent.iterdir() if p.name.startswith("nidmap-")]


def test_a_plan_that_takes_longer_than_the_patience_is_given_up(srun, tmp_path):
    os.mkfifo(tmp_path / "slow")
    done = call(srun, options=("-m", str(tmp_path / "slow"), "--patience", "2"))
    assert (done.returncode, json.loads(done.stdout)["argv"]) == (0, ["-n", "16", "./app"])
    busy, still = "takes too long", "makes no progress"  # the first where it seldom gets a core
    assert done.stderr.replace(busy, still) == (
        "nidmap: planning makes no progress (raise --patience, now 2): default order\n"
    )


def test_ranks_that_never_say_where_they_are_are_not_waited_for(srun):
    pids = srun.parent / "pids"
    hang = f'case "$*" in *nidmap-rank*) echo $$ >>{pids}; sleep 60;; *) exec real "$@";; esac'
    (srun / "real").write_text(SRUN)
    (srun / "real").chmod(0o755)
    (srun / "srun").write_text(f"#!/bin/sh\n{hang}\n")
    done = call(srun, "--hosts", options=("--verify", "--patience", "5"))
    assert json.loads(done.stdout.splitlines()[0])["env"]["NIDMAP_LAUNCH"]
    said = "srun did not answer in 5 s; --patience allows more time"
    assert done.stderr == f"nidmap: cannot verify: {said}\n{SAID}"
    (pid,) = pids.read_text().split()
    assert not os.path.exists(f"/proc/{pid}")


#: For a computer that is slow.
SLOW = ("--patience", "60")

#: The job's nodes in another order than Slurm's, and an order of ranks on them.
PLANNED = named(14, 12, 15, 13)


@pytest.mark.parametrize("name", ["plan.json", "plan.hosts", "plan.slots", "MPICH_RANK_ORDER"])
def test_what_plan_or_order_wrote_is_launched(srun, name):
    on = slots(PLANNED, 4)
    made = on.with_order(
        np.random.default_rng(3).permutation(16), Origin("auto: bricks", "stencil:4x4")
    )
    form = format_of(name)
    (srun.parent / name).write_text(emit(made, form))
    here = ("--nodes", ",".join(PLANNED)) if name == "plan.slots" else ()
    done = call(srun, "--hosts", options=(*ORDER, name, "-m", "tree:16x2,bw=1", *SLOW, *here))
    assert done.stdout.split("\n")[1:17] == made.host_of_rank.tolist()
    made_by = "auto: bricks " if name == "plan.json" else ""
    head = f"nidmap: {made_by}order of stencil:4x4 from {name} on 4 nodes x 4; expected "
    assert done.stderr.startswith(head)
    assert "x as fast as the default order" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_expectation_that_takes_too_long_is_not_waited_for(srun, tmp_path):
    """The order is there: the job starts with it, and nothing is expected."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(
        "import sys, importlib.util\n"
        "def hang(*words, **more):\n"
        "    while True: pass\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name != 'nidmap.rankmap.launch.expectation': return None\n"
        "        sys.meta_path.remove(self)\n"
        "        spec = importlib.util.find_spec(name)\n"
        "        load = spec.loader.exec_module\n"
        "        def exec_module(module):\n"
        "            load(module)\n"
        "            module.expectation = hang\n"
        "        spec.loader.exec_module = exec_module\n"
        "        return spec\n"
        "sys.meta_path.insert(0, Slow())\n"
    )
    env = {"PYTHONPATH": f"{slow}:{ROOT}"}
    done = call(srun, "--hosts", options=("-m", "tree:16x2,bw=1", "--patience", "5"), env=env)
    assert done.stdout.split("\n")[1:5] == named(12, 12, 13, 13)
    assert done.stderr == SAID.replace(
        "is not known: no machine is named", "could not be computed in time"
    )


def left(srun):
    """Return the order directories that are there."""
    return [p.name for p in srun.parent.iterdir() if p.name.startswith("nidmap-")]


@pytest.mark.parametrize("how", [["--rc", "3"], ["--die", "9"], ["--die", "15"]])
def test_the_order_goes_when_the_job_has_ended(srun, how):
    seen = json.loads(call(srun, *how).stdout.splitlines()[0])
    assert os.path.basename(os.path.dirname(seen["env"]["NIDMAP_LAUNCH"])).startswith("nidmap-")
    wait_until(lambda: not left(srun), "the order to go")


def test_the_order_stays_while_the_job_runs_and_where_it_was_asked_for(srun):
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}"}
    with subprocess.Popen(
        [*RUN, "--", "srun", "-n", "16", "--wait"], env=given, cwd=srun.parent, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        path = json.loads(process.stdout.readline())["env"]["NIDMAP_LAUNCH"]
        assert process.stdout.readline() == "ready\n"
        assert os.path.exists(path)
        os.killpg(process.pid, signal.SIGTERM)  # as a batch system does; not to who tidies up
        process.wait(HANGS)
    wait_until(lambda: not left(srun), "the order to go")
    call(srun, options=("--order-dir", str(srun.parent)))
    assert len(left(srun)) == 1


def test_ctrl_c_while_planning_starts_nothing_and_prints_no_traceback(srun, faulty):
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}"}
    command = [*RUN, "-m", str(faulty / "hanging"), "--patience", "0"]
    with subprocess.Popen(
        [*command, "--", "srun", "-n", "16", "./app"], env=given, cwd=srun.parent,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_until(lambda: children(process.pid), "the planning")
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=600)
    assert (process.returncode, out, said.strip()) == (130, "", "nidmap: interrupted")
    assert not left(srun)


def test_ctrl_c_before_there_is_a_command_line_prints_no_traceback(srun, tmp_path):
    """The command line's own modules are still being loaded."""
    early = tmp_path / "early"
    (early / "click").mkdir(parents=True)
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    (early / "click" / "__init__.py").write_text(stop)
    done = call(srun, env={"PYTHONPATH": f"{early}:{ROOT}"})
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "nidmap: interrupted\n"


@pytest.mark.parametrize(
    ("words", "env", "says"),
    [
        (["--multi-prog", "conf"], {}, "srun --multi-prog starts several"),
        (["--het-group=0,1", "./app"], {}, "srun --het-group starts several"),
        (["./a", ":", "-n", "2", "./b"], {}, "several programs in one launch (':')"),
        (["./app"], {"SLURM_HET_SIZE": "2"}, "heterogeneous jobs, which have several"),
    ],
)
def test_what_has_several_parts_is_left_as_it_is_and_said(srun, words, env, says):
    given = {**ENV, **env, "PATH": f"{srun}:{ENV['PATH']}"}
    done = subprocess.run(
        [*RUN, "--", "srun", "-n", "16", *words], env=given, cwd=srun.parent,
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert json.loads(done.stdout)["argv"] == ["-n", "16", *words]
    assert says in done.stderr
    assert done.stderr.endswith(": default order\n")


@pytest.mark.parametrize(
    ("words", "env", "remarked"),
    [([], {}, True), (["--mpi=pmi2"], {}, False), ([], {"SLURM_MPI_TYPE": "pmix"}, False)],
)
def test_a_slurm_without_pmi_is_remarked_once_where_nobody_names_one(srun, words, env, remarked):
    (srun / "scontrol").write_text("#!/bin/sh\necho 'MpiDefault              = none'\n")
    (srun / "scontrol").chmod(0o755)
    given = {**ENV, "SLURM_MPI_TYPE": "", **env, "PATH": f"{srun}:{ENV['PATH']}"}
    done = subprocess.run(
        [*RUN, "--patience", "30", "--", "srun", *words, "-n", "16", "./app"], env=given,
        cwd=srun.parent, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert done.stderr.count("MpiDefault is none") == int(remarked)
    assert done.stderr.startswith(SAID)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_while_planning_ends_the_planning_only(srun, faulty, number):
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}"}
    command = [*RUN, "-m", str(faulty / "hanging"), "--patience", "0"]
    with subprocess.Popen(
        [*command, "--", "srun", "-n", "16", "./app"], env=given, cwd=srun.parent,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_until(lambda: children(process.pid), "the planning")
        process.send_signal(number)
        out, said = process.communicate(timeout=600)
    assert process.returncode == 0
    assert json.loads(out)["argv"] == ["-n", "16", "./app"]
    assert said == f"nidmap: {number.name} while planning: default order\n"
    assert not [p for p in srun.parent.iterdir() if p.name.startswith("nidmap-")]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as stream:
        return stream.read().split()


def test_nothing_of_the_planning_is_left_behind(srun, faulty):
    look = "read -r line < /proc/$$/task/$$/children; echo children: $line; ls /proc/self/fd"
    (srun / "srun").write_text(f"#!/bin/sh\n{look}\n")
    bare = call(srun, wrapped=False).stdout
    assert bare.startswith("children:\n")
    for options in ([], ["-m", str(faulty / "hanging"), "--patience", "3"]):
        assert call(srun, options=options).stdout == bare


def test_a_closed_stderr_costs_no_job(srun):
    given = {**ENV, "PATH": f"{srun}:{ENV['PATH']}"}
    command = [*RUN, "--strategy", "magic", "--", "srun", "-n", "16", "./app"]
    script = 'exec "$@" 2>&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command], env=given, cwd=srun.parent,
        stdout=subprocess.PIPE, check=True, timeout=600,
    )  # fmt: skip
    assert json.loads(done.stdout)["argv"] == ["-n", "16", "./app"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_directory_costs_no_job(srun, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o500)
    done = call(srun, cwd=shut, env={"TMPDIR": str(shut)})
    assert (done.returncode, json.loads(done.stdout)["argv"][-3:]) == (0, ["-n", "16", "./app"])


def test_a_launcher_that_is_not_there_is_said_and_leaves_no_file(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [*RUN, "--", "srun", "-n", "16", "./app"], env={**ENV, "PATH": str(empty)}, cwd=empty,
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == f"{SAID}nidmap: cannot start srun: No such file or directory\n"
    assert list(empty.iterdir()) == []


def test_an_order_file_is_never_where_someone_else_waits_for_it(srun):
    """Planted links with all names that could be guessed: none is followed."""
    folder = srun.parent / "shared"
    folder.mkdir(mode=0o1777)
    precious = srun.parent / "precious"
    precious.write_text("precious")
    for name in ("hosts", "MPICH_RANK_ORDER", "nidmap-4711", "nidmap-4711-hosts", "nidmap-"):
        (folder / name).symlink_to(precious)
    seen = set()
    for _ in range(5):
        done = call(srun, options=("--order-dir", str(folder)))
        seen.add(json.loads(done.stdout)["env"]["NIDMAP_LAUNCH"])
    assert len(seen) == 5
    assert precious.read_text() == "precious"
    assert all(not os.path.islink(path) and os.stat(path).st_mode & 0o077 == 0 for path in seen)
