# SPDX-License-Identifier: Apache-2.0
"""``nidmap order`` and ``nidmap run --dry-run`` as a user meets them."""

import io
import json
import os
import shlex

import numpy as np
import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.rankmap.orders import arrange
from tests.rankmap.helpers import named, slots

MORTON = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
JOB = {
    "SLURM_JOB_NODELIST": "nid[00012-00015]",
    "SLURM_TASKS_PER_NODE": "16(x4)",
    "SLURM_NTASKS": "64",
    "SLURM_JOB_ID": "4711",
    "SLURM_CPU_BIND": "cores",
    "SLURM_MPI_TYPE": "none",
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Stand in an empty directory and outside of any job."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("SLURM_", "MPICH_", "CRAY_", "NIDMAP_", "PBS_", "LSB_")):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def tool(capsys):
    """Run the command line and return code, stdout, stderr."""

    def call(line):
        code = nidmap(shlex.split(line))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_an_order_goes_to_stdout_and_the_talk_to_stderr(tool):
    code, out, err = tool(
        "order -m torus:4x4x4 --nodes nid[00000-00003] --ppn 4 --pattern fft:4x4 --strategy morton"
    )
    assert code == 0
    assert [int(line) for line in out.split()] == MORTON
    assert err == "morton order of fft:4x4 on 4 nodes x 4\n"


def test_the_default_order_is_row_major_on_all_free_nodes(tool):
    code, out, _ = tool("order -m torus:4x4x4 --ppn 2 --pattern alltoall")
    assert (code, [int(line) for line in out.split()]) == (0, list(range(128)))


def test_a_machine_from_the_environment(tool, monkeypatch):
    monkeypatch.setenv("NIDMAP_MACHINE", "torus:2x2x2")
    assert tool("order --ppn 2 --pattern stencil:4x4")[0] == 0


def test_a_grid_is_short_for_a_stencil(tool):
    line = "order -m torus:4x4x4 --nodes 0-3 --ppn 4 --strategy hilbert"
    assert tool(f"{line} --pattern stencil:4x4")[1] == tool(f"{line} --pattern stencil:4x4")[1]


def test_json_is_one_stable_object(tool):
    line = "order -m torus:4x4x4 --nodes 3,0 --ppn 3,1 --pattern stencil:2x2 --strategy morton"
    code, out, _ = tool(f"{line} --json")
    assert code == 0
    assert json.loads(out) == {
        "schema": "nidmap.order/1",
        "strategy": "morton",
        "pattern": "stencil:2x2",
        "ranks": 4,
        "nodelist": "nid[00003,00000]",
        "nodes": named(3, 0),
        "counts": [3, 1],
        "slots": [0, 1, 2, 3],
    }
    assert tool(f"{line} --json")[1] == out


def test_an_unsorted_list_gives_two_rank_orders_and_a_word_about_it(tool):
    line = (
        "order -m torus:4x4x4 --nodes 9,3 --ppn 8 "
        "--pattern stencil:4x4 --strategy morton --format mpich"
    )
    _, as_sorted, said = tool(line)
    assert "for the nodes in Slurm's order, not in the given one" in said
    assert tool(f"{line} --launcher-order sorted")[1] == as_sorted
    given = tool(f"{line} --launcher-order given")[1]
    assert given != as_sorted
    assert "# nid[00003,00009]" in as_sorted
    assert "# nid[00009,00003]" in given
    _, _, quiet = tool(line.replace("9,3", "3,9"))
    assert "not in the given one" not in quiet


def test_the_name_of_the_output_says_its_format(tool, here):
    line = "order -m torus:4x4x4 --nodes 0-3 --ppn 4 --pattern stencil:4x4 --strategy row-major"
    for name in ("MPICH_RANK_ORDER", "a.json", "a.hosts", "a.slots"):
        code, out, _ = tool(f"{line} -o {name}")
        assert (code, out) == (0, "")
    assert (here / "MPICH_RANK_ORDER").read_text().startswith("# nidmap order")
    assert json.loads((here / "a.json").read_text())["ranks"] == 16
    assert (here / "a.hosts").read_text().split() == np.repeat(named(0, 1, 2, 3), 4).tolist()
    assert (here / "a.slots").read_text().split() == [str(k) for k in range(16)]
    assert sorted(p.name for p in here.iterdir()) == [
        "MPICH_RANK_ORDER",
        "a.hosts",
        "a.json",
        "a.slots",
    ]


def test_nodes_come_from_a_host_file_with_repeats(tool, here):
    (here / "hosts").write_text("nid00005\nnid00005\nnid00002\n# none\nnid00005\n")
    code, out, _ = tool("order -m torus:4x4x4 --nodes @hosts --pattern ring --json")
    assert code == 0
    assert (json.loads(out)["nodes"], json.loads(out)["counts"]) == (named(5, 2), [3, 1])


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (
            "--ppn 24 --pattern fft:8x8",
            2,
            "fft:8x8 has 64 ranks, but there are 48 slots (2 nodes x 24)",
        ),
        ("--ppn 24", 2, "no pattern given"),
        ("--ppn 24 --pattern nonsense", 2, "unknown pattern 'nonsense'"),
        ("--ppn 24 --pattern ring --strategy best", 2, "unknown strategy 'best'; choose from"),
        ("--ppn 24 --pattern ring --format scotch", 2, "unknown format 'scotch'"),
        ("--ppn 24 --pattern stencil:6xx8", 2, "'' is not an extent"),
        ("--ppn 24,24,12 --pattern ring", 2, "--ppn has 3 numbers, but there are 2 nodes"),
        ("--ppn 0 --pattern ring", 2, "'0' is not a number of ranks"),
        ("--ppn 99999999 --pattern ring", 2, "slots, at most"),
        ("--pattern fft:8x8", 2, "there are 2 slots"),
        ("--ppn 2 --pattern ring --launcher-order random", 2, "--launcher-order"),
        ("--ppn 2 --pattern ring -o missing/file", 5, "cannot write missing/file"),
        ("--ppn 2 --pattern ring -o /dev/full", 5, "No space left"),
    ],
)
def test_a_request_that_makes_no_sense(tool, here, options, code, says):
    got, out, err = tool(f"order -m torus:4x4x4 --nodes 7,3 {options}")
    assert (got, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("nodes", "code"), [("7,7", 3), ("nid00099", 3), ("@missing", 3), ("7,,[", 3)]
)
def test_nodes_that_cannot_be_meant(tool, nodes, code):
    got, out, err = tool(f"order -m torus:4x4x4 --nodes {nodes} --ppn 2 --pattern ring")
    assert (got, out) == (code, "")
    assert err.count("\n") == 1


def test_a_service_node_and_too_many_ranks_are_said(tool):
    _, _, err = tool("order -m shaheen2 --nodes nid00012 --ppn 500 --pattern ring")
    assert "1 node gets more ranks than it has cores: nid00012 500 on 32" in err


@pytest.mark.parametrize("command", ["order", "predict --bytes 8", "score --strategy row-major"])
def test_inside_a_job_its_nodes_are_meant(tool, monkeypatch, command):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid[00012-00014]")
    _, out, err = tool(f"{command} -m shaheen2 --ppn 2 --pattern ring --json")
    assert "nidmap: on the 3 nodes of this job; override with --nodes\n" in err
    document = json.loads(out)
    assert document.get("ranks", len(document.get("slots", []))) == 6
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid00000,elsewhere[1-2]")
    code, out, err = tool(f"{command} -m torus:2x2 --pattern ring --json")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "torus:2x2 does not have this job's nodes: elsewhere1, elsewhere2" in err


TREE = "SwitchName=s0 Nodes=node[1-9]\nSwitchName=s1 Nodes=node[10-19]\n"
TREE += "SwitchName=top Switches=s[0-1]\n"
#: How batch systems state a job of two ranks each on node3 and node12; {} is a file of hosts.
JOBS = {
    "torque": (
        {"PBS_NODEFILE": "{}"},
        "node3.cm.org\nnode3.cm.org\nnode12.cm.org\nnode12.cm.org\n",
    ),
    "pbs by turns": ({"PBS_NODEFILE": "{}", "PBS_JOBID": "1.srv"}, "node3\nnode12\n" * 2),
    "lsf file": ({"LSB_DJOB_HOSTFILE": "{}", "LSB_JOBID": "7"}, "node3\nnode3\nnode12\nnode12\n"),
    "lsf counts": ({"LSB_MCPU_HOSTS": "node3.cm 2 node12.cm 2 "}, ""),
    "lsf hosts": ({"LSB_HOSTS": "node3 node3 node12 node12"}, ""),
    "grid engine": (
        {"PE_HOSTFILE": "{}", "JOB_ID": "7"},
        "node3.cm 2 all.q@node3.cm UNDEFINED\nnode12.cm 2 all.q@node12.cm <NULL>\n",
    ),
    "oar": ({"OAR_NODEFILE": "{}"}, "node3.cm\nnode3.cm\nnode12.cm\nnode12.cm\n"),
    "slurm": (
        {"SLURM_JOB_NODELIST": "node[3,12]", "SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "2(x2)"},
        "",
    ),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("order --pattern ring --strategy row-major", lambda d: d["slots"]),
        ("score --pattern ring --strategy row-major", lambda d: range(d["ranks"])),
        ("predict --pattern ring --bytes 8", lambda d: range(d["ranks"])),
        ("nodes sort", lambda d: range(sum(d["ranks"]))),
    ],
)
def test_every_batch_systems_job_is_its_nodes(tool, here, monkeypatch, job, command, ranks):
    variables, text = JOBS[job]
    (here / "hosts").write_text(text)
    (here / "topology.conf").write_text(TREE)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(here / "hosts"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, _ = tool(f"{command} -m topology.conf --json")
    assert (code, len(ranks(json.loads(out)))) == (0, 4)
    if command.startswith(("order", "nodes")):
        assert all(f'"{host}"' in out for host in ("node3", "node12"))


@pytest.fixture
def nowhere(monkeypatch):
    """Neither a batch system nor a user's own file is here."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


def test_a_host_file_alone_is_enough_for_an_order(tool, here, nowhere):
    (here / "hosts").write_text("h1.a slots=2\nh1.b slots=2\n")
    options = "order --nodes @hosts --pattern stencil:2x2 --strategy round-robin"
    for form in ("hosts", "slurm"):
        code, out, err = tool(f"{options} --format {form}")
        assert (code, out.split()) == (0, ["h1.a", "h1.b", "h1.a", "h1.b"])
        assert "no machine is named" in err


def test_a_host_file_alone_is_enough_for_a_score(tool, here, nowhere):
    """Ranks 0 to 3 in a ring on two hosts dealt in turn: all four pairs cross, by rows two."""
    (here / "hosts").write_text("h1.a slots=2\nh1.b slots=2\n")
    words = "--nodes @hosts --pattern ring"
    tool(f"order {words} --strategy round-robin --format slots -o o.slots")
    for order, cost in (("--order o.slots", 4), ("--strategy row-major", 2)):
        code, out, err = tool(f"score {words} {order} --json")
        found = json.loads(out)
        assert (code, found["cost"], found["default_cost"]) == (0, cost, 2)
        assert (found["off_node"], found["hop_bytes"]) == (cost, None)
        assert "no machine is named: only the nodes' names are known" in err
    assert "hop-bytes          unknown" in tool(f"score {words} --strategy row-major")[1]


def test_a_time_needs_a_machine_and_says_so(tool, here, nowhere):
    (here / "hosts").write_text("h1.a slots=2\nh1.b slots=2\n")
    code, out, err = tool("predict --nodes @hosts --pattern ring")
    assert (code, out) == (2, "")
    assert err.startswith("nidmap: predicting a time needs links: no machine given: use -m SPEC")
    assert err.endswith("nidmap score needs only the nodes' names\n")


def test_without_nodes_an_order_needs_a_machine(tool, nowhere):
    code, out, err = tool("order --pattern ring")
    assert (code, out) == (2, "")
    assert "no machine given" in err


def test_a_job_alone_is_enough_for_an_order(tool, nowhere, monkeypatch):
    monkeypatch.setenv("LSB_MCPU_HOSTS", "hosta 2 hostb 1")
    code, out, _ = tool("order --pattern ring --format seq")
    assert (code, out.split()) == (0, ["hosta", "hosta", "hostb"])


def test_the_directory_of_an_order_is_made(tool, here, monkeypatch):
    code, _, err = dry(
        tool, monkeypatch, "--pattern fft:8x8 --dry-run --order-dir a/b -- srun -n 64 ./app"
    )
    assert code == 0
    assert "the order file is" in err
    assert len(list((here / "a" / "b").iterdir())) == 1


def dry(tool, monkeypatch, options, env=JOB):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return tool(f"run {options}")


def test_a_dry_run_prints_the_whole_command(tool, monkeypatch):
    options = (
        "--pattern fft:8x8 --strategy morton --dry-run --order-dir . -- srun -n 64 './my app' -x 1"
    )
    code, out, err = dry(tool, monkeypatch, options)
    assert code == 0
    variable, *words = shlex.split(out)
    assert words[3:] == ["-n", "64", "./my app", "-x", "1"]
    name, _, path = variable.partition("=")
    expected = arrange(slots(named(12, 13, 14, 15), 16), "fft:8x8", "morton")
    with open(path) as stream:
        assert (name, stream.read().split()) == ("NIDMAP_LAUNCH", expected.host_of_rank.tolist())
    assert err == (
        "nidmap: morton order of fft:8x8 on 4 nodes x 16; its gain is not known: no machine"
        f" is named\nnidmap: the order file is {path}\n"
    )


def test_a_dry_run_leaves_nothing(tool, here, monkeypatch):
    code, out, err = dry(
        tool, monkeypatch, "--pattern stencil:8x8 --dry-run --json -- srun -n 64 ./app"
    )
    assert (code, json.loads(out)["order_file"]) == (0, None)
    assert err.endswith("nidmap: a dry run leaves no order file: --order-dir DIR keeps one\n")
    assert list(here.iterdir()) == []


def test_a_dry_run_for_a_cray(tool, monkeypatch):
    options = "-m shaheen2 --pattern fft:8x8 --strategy morton --dry-run -- srun -n 64 ./app"
    code, out, _ = dry(tool, monkeypatch, options)
    assert code == 0
    method, file, *words = shlex.split(out)
    assert method == "MPICH_RANK_REORDER_METHOD=3"
    assert file.startswith("MPICH_RANK_REORDER_FILE=/")
    assert words[0] == "srun"
    assert "--nodelist=nid[00012-00015]" in words
    assert "--distribution=block" in words
    assert "arbitrary" not in out


def test_a_dry_run_of_aprun(tool, monkeypatch):
    options = (
        "-m torus:4x4x4 --nodes 12-15 --pattern stencil:8x8 --dry-run -- aprun -n 64 -N 16 ./app"
    )
    code, out, err = dry(tool, monkeypatch, options, {})
    assert code == 0
    assert shlex.split(out)[2:] == ["aprun", "-L", "12-15", "-n", "64", "-N", "16", "./app"]
    assert "a real run asks the launcher" in err


def test_a_dry_run_as_json(tool, monkeypatch):
    options = "--pattern stencil:8x8 --dry-run --order-dir . --json -- srun -n 64 ./app"
    code, out, _ = dry(tool, monkeypatch, options)
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "nidmap.run/1"
    hosts = [f"--nodelist={document['order_file']}", "--distribution=arbitrary"]
    assert document["argv"] == ["srun", *hosts, "-n", "64", "./app"]
    assert document["env"] == {"NIDMAP_LAUNCH": document["order_file"]}
    assert (document["strategy"].split(":")[0], document["unclear"]) == ("auto", "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--pattern fft:8x9 -- srun -n 64 ./app", "fft:8x9 has 72 ranks, but there are 64 slots"),
        ("-- srun -n 64 ./app", "no --pattern given"),
        ("--pattern ring -- jsrun -n 64 ./app", "unknown launcher 'jsrun'; choose from aprun"),
        ("--pattern ring -m nonsense -- srun -n 64 ./app", "nonsense"),
    ],
)
def test_what_is_unclear_leaves_the_command_alone(tool, here, monkeypatch, options, says):
    before, _, command = options.partition("-- ")
    code, out, err = dry(tool, monkeypatch, f"{before} --dry-run -- {command}")
    assert (code, out) == (0, command + "\n")
    assert says in err
    assert err.endswith(": default order\n")
    assert err.count("\n") == 1
    code, out, err = dry(tool, monkeypatch, f"{before} --dry-run --strict -- {command}")
    assert (code, out) == (125, "")
    assert says in err
    assert list(here.iterdir()) == []


def test_run_takes_a_host_file_but_not_stdin(tool, here, monkeypatch):
    (here / "hosts").write_text("nid00013\nnid00012\nnid00013\n")
    env = {**JOB, "SLURM_NTASKS": "3"}
    code, out, _ = dry(
        tool,
        monkeypatch,
        "--nodes @hosts --pattern stencil:3 --dry-run --order-dir . -- srun ./app",
        env,
    )
    path = shlex.split(out)[0].partition("=")[2]
    assert code == 0
    with open(path) as stream:
        assert stream.read().split() == named(13, 13, 12)
    code, out, err = dry(
        tool, monkeypatch, "--nodes - --pattern stencil:3 --dry-run -- srun ./app", env
    )
    assert (code, out) == (0, "srun ./app\n")
    assert "standard input belongs to the program" in err


@pytest.mark.parametrize(
    "options", ["", "--pattern ring --", "--json -- srun ./app", "--odd -- srun"]
)
def test_run_without_a_command_is_a_usage_error(tool, options):
    code, out, err = tool(f"run {options}")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_help_has_examples(tool):
    for command in ("order", "run"):
        code, out, _ = tool(f"{command} --help")
        assert code == 0
        assert f"nidmap {command} " in out


def torn_graph(path, ranks):
    """Write a ring of ranks in random order, which no rule describes."""
    order = np.random.default_rng(3).permutation(ranks)
    rows = np.zeros((ranks, 2), dtype=np.int64)
    rows[order, 0], rows[order, 1] = np.roll(order, 1), np.roll(order, -1)
    edges = "".join(f"{a + 1} {b + 1}\n" for a, b in rows.tolist())
    path.write_text(f"{ranks} {ranks}\n{edges}")


@pytest.mark.parametrize("strategy", ["auto", "graph"])
def test_a_deadline_ends_the_search_for_an_order_and_is_said(tool, here, strategy):
    torn_graph(here / "torn.graph", 2**15)
    options = "-m tree:16x16x16,dist=1:2:3 --ppn 8 --pattern graph:torn.graph -o a.slots"
    code, _, talk = tool(f"order {options} --strategy {strategy} --deadline 0.001")
    assert code == 0
    assert "--deadline ended the search" in talk or "% of the usual search" in talk
    found = np.loadtxt(here / "a.slots", dtype=int)
    assert np.array_equal(np.sort(found), np.arange(2**15))


def test_a_long_search_is_said_before_it_begins(tool, here, monkeypatch):
    monkeypatch.setattr("nidmap.rankmap.commands.order._LONG", 0.1)
    torn_graph(here / "torn.graph", 512)
    machine = "order -m tree:8x8,dist=1:2 --ppn 8"
    code, _, talk = tool(f"{machine} --pattern graph:torn.graph --strategy graph")
    assert code == 0
    assert talk.startswith("nidmap: a graph of 512 ranks takes about 0 s; --deadline S ends it")
    code, _, talk = tool(f"{machine} --pattern stencil:8x64 --strategy hilbert")
    assert code == 0
    assert "takes about" not in talk


def test_a_deadline_is_for_what_searches(tool):
    code, _, talk = tool(
        "order -m tree:2x2 --ppn 1 --pattern stencil:2x2 --deadline 3 --strategy hilbert"
    )
    assert code == 2
    assert "--deadline needs --strategy auto or graph" in talk


def test_files_that_windows_wrote_begin_with_a_mark(tool, here):
    (here / "b.slots").write_bytes(b"\xef\xbb\xbf0\r\n1\r\n2\r\n3\r\n")
    (here / "b.graph").write_bytes(b"\xef\xbb\xbf4 3\r\n2\r\n1 3\r\n2 4\r\n3\r\n")
    options = "-m tree:2x2,dist=1:2 --ppn 1 --pattern graph:b.graph --order b.slots"
    code, out, talk = tool(f"score {options}")
    assert code == 0, talk
    assert out.startswith("J                  4 ")


@pytest.mark.parametrize("slot", ["-1", "4", "99999999999999999999"])
def test_a_slot_that_there_is_not_makes_a_broken_permutation(tool, here, slot):
    (here / "a.slots").write_text(f"0\n1\n2\n{slot}\n")
    code, _, talk = tool("score -m tree:2x2 --ppn 1 --pattern stencil:2x2 --order a.slots")
    assert code == 1
    assert talk.startswith("nidmap: invalid order: a.slots:4: ")
    assert "outside 0 to 3" in talk


def test_a_graph_too_large_for_predictions_is_ordered_by_j(tool, here, monkeypatch):
    monkeypatch.setattr("nidmap.rankmap.search.auto_order.MOST_TIMED", 63)
    torn_graph(here / "torn.graph", 64)
    code, out, talk = tool("order -m torus:4x4,bw=1 --ppn 4 --pattern graph:torn.graph --json")
    assert code == 0
    assert "chosen by J (64 edges are too many to predict times)" in talk
    assert json.loads(out)["optimised"]["by"] == "J"
