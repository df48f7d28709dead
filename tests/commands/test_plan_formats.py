# SPDX-License-Identifier: Apache-2.0
"""What ``nidmap plan`` writes: headers, launch lines, and what a file's name says."""

import itertools
import json
import os
import shlex
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.commands import run
from nidmap.placement.nodelist import NodeList
from nidmap.placement.scheduler.baseline import touched_parts
from nidmap.placement.specs import parse_spec


@pytest.fixture
def tool(capfd, monkeypatch, tmp_path):
    """Run the command line in an empty directory; return code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def call(line):
        code = run(shlex.split(line))
        return code, *capfd.readouterr()

    return call


def test_the_nodes_of_ones_own_job_are_free_to_it(tool, tmp_path, monkeypatch):
    (tmp_path / "a.sinfo").write_text("NODELIST STATE\nn[1-3] alloc\nn4 idle\n")
    assert tool("plan -m a.sinfo -N 2 --from n[1-2]")[0] == 1
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    code, out, _ = tool("plan -m a.sinfo -N 2 --from n[1-2]")
    assert (code, out) == (0, "n[1-2]\n")


def test_aprun_counts_the_ranks(tool):
    _, out, _ = tool("plan -m bluewaters -N 2 --ppn 4 --format aprun")
    assert " -n 8 -N 4 " in out


@pytest.mark.parametrize(
    ("machine", "form", "words"),
    [
        ("theta", "pbs", "this site runs Cobalt; use --format aprun"),
        ("theta", "sbatch", "this site runs Cobalt"),
        ("titan", "sbatch", "this site runs Torque; use --format pbs"),
        ("shaheen2", "aprun", "this site runs Slurm; use --format sbatch"),
    ],
)
def test_a_header_for_another_scheduler_is_refused(tool, machine, form, words):
    code, out, err = tool(f"plan -m {machine} -N 2 --format {form}")
    assert (code, out) == (2, "")
    assert words in err


def excluded(text):
    (line,) = [x for x in text.splitlines() if x.startswith("#SBATCH --exclude=")]
    return set(NodeList.parse(line.partition("=")[2]))


def test_exclude_on_a_torus_leaves_the_box_around_the_plan(tool):
    _, out, _ = tool("plan -m torus:6x5x4 -N 8 --strategy hilbert --format exclude")
    assert "# Slurm chooses in the box x " in out
    _, plan, _ = tool("plan -m torus:6x5x4 -N 8 --strategy hilbert")
    machine = parse_spec("torus:6x5x4")
    rows = [machine.names.tolist().index(name) for name in NodeList.parse(plan)]
    box = smallest_box(machine, rows)
    assert set(machine.names.tolist()) - excluded(out) == {machine.names[r] for r in box}


def test_exclude_on_a_dragonfly_leaves_the_groups_of_the_plan(tool):
    _, out, _ = tool("plan -m dragonfly:groups=3,chassis=2,blades=2,nodes=2 -N 10 --format exclude")
    assert excluded(out) == {f"nid{i:05d}" for i in range(16, 24)}


def test_softer_headers_keep_to_the_lists_of_the_user(tool):
    words = "-m torus:4x4 -N 2 --from #0-7 --exclude #3 --include #5 --format exclude"
    _, out, _ = tool(f"plan {words}")
    assert excluded(out) >= {f"nid{i:05d}" for i in (3, *range(8, 16))}
    assert "#SBATCH --nodelist=nid00005\n" in out


@pytest.mark.parametrize(("count", "leaves"), [(4, 1), (6, 2), (12, 3)])
def test_a_pinned_header_offers_switches_where_slurm_has_a_tree(tool, tmp_path, count, leaves):
    conf = "".join(f"SwitchName=s{k} Nodes=n[{4 * k}-{4 * k + 3}]\n" for k in range(3))
    (tmp_path / "topology.conf").write_text(f"{conf}SwitchName=top Switches=s[0-2]\n")
    _, out, _ = tool(f"plan -m {tmp_path}/topology.conf -N {count} --format sbatch")
    assert out.splitlines()[-1] == f"##SBATCH --switches={leaves}@5:00"
    assert "#SBATCH --nodelist=" in out
    for spec in (f"{tmp_path}/topology.conf --format exclude", "torus:4x4 --format sbatch"):
        _, out, _ = tool(f"plan -N {count} -m {spec}")
        assert "--switches" not in out


@pytest.mark.parametrize("time", ["30", "90:00", "1:30:00", "2-12", "1-00:30:00"])
def test_a_header_waits_for_few_switches_as_long_as_the_user_says(tool, tmp_path, time):
    conf = "".join(f"SwitchName=s{k} Nodes=n[{4 * k}-{4 * k + 3}]\n" for k in range(3))
    (tmp_path / "topology.conf").write_text(f"{conf}SwitchName=top Switches=s[0-2]\n")
    words = f"plan -m {tmp_path}/topology.conf -N 6 --format sbatch --switch-wait {time}"
    code, out, _ = tool(f"{words} --exclude n11 --include n2")
    assert code == 0
    assert f"#SBATCH --switches=2@{time}\n" in out
    assert "#SBATCH --nodelist=n2\n" in out
    assert "#SBATCH --exclude=n11\n" in out
    assert "##SBATCH" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-m torus:4x4 --format sbatch --switch-wait 30", "needs a Slurm that honours --switches"),
        ("-m torus:4x4 --switch-wait 30", "--switch-wait goes with --format sbatch"),
        ("-m torus:4x4 --format sbatch --switch-wait soon", "'soon' is not a time limit of"),
        ("-m torus:4x4 --format sbatch --switch-wait 5:0", "'5:0' is not a time limit of"),
    ],
)
def test_a_wait_that_no_slurm_takes_is_refused(tool, words, said):
    code, out, err = tool(f"plan -N 4 {words}")
    assert (code, out) == (2, "")
    assert said in err


def smallest_box(machine, rows):
    """Return the rows in the smallest box around some, by trying every box axis by axis."""
    inside = set(range(len(machine)))
    for axis, extent in enumerate(machine.topology.extents[:-1]):
        needed = {int(machine.coords[r, axis]) for r in rows}
        arcs = [
            {(start + k) % extent for k in range(length)}
            for length, start in itertools.product(range(1, extent + 1), range(extent))
        ]
        arc = next(a for a in arcs if needed <= a)
        inside &= {r for r in range(len(machine)) if int(machine.coords[r, axis]) in arc}
    return inside


@given(st.sets(st.integers(0, 59), min_size=1, max_size=6))
def test_a_region_of_a_torus_is_a_smallest_box(rows):
    machine = parse_spec("torus:5x4x3")
    inside, _ = next(touched_parts(machine, sorted(rows)))
    assert inside.sum() == len(smallest_box(machine, rows))
    assert inside[sorted(rows)].all()


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.json", "{"), ("a.sbatch", "#!/bin/bash\n"), ("a.pbs", "#!/bin/bash\n"),
        ("a.hosts", "nid00000\n"), ("a.nids", "0-"), ("a.txt", "nid["), ("nodes", "nid["),
        ("nodes.4711", "nid["),
    ],
)  # fmt: skip
def test_the_name_of_the_file_says_the_format(tool, tmp_path, name, start):
    assert tool(f"plan -m torus:4x4 -N 4 -o {name}")[0] == 0
    assert (tmp_path / name).read_text().startswith(start)


@pytest.mark.parametrize(
    "command",
    [
        "plan -m torus:4x4 -N 4", "compare -m torus:4x4 -N 4 --pattern alltoall --bytes 8",
        "order -m torus:4x4 --pattern ring", "machine export -m torus:4x4",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.pdf", "MPICH_RANK_ORDER", "a.JSON"])
def test_a_suffix_is_honoured_or_refused(tool, tmp_path, command, name):
    code, out, err = tool(f"{command} -o {name}")
    assert out == ""
    honoured = name == "a.JSON" or (command.startswith("order") and name == "MPICH_RANK_ORDER")
    if honoured:
        assert code == 0, err
        text = (tmp_path / name).read_text()
        assert text.startswith(("{", "[")) if name == "a.JSON" else text
    else:
        assert code == 2
        assert len(err.splitlines()) == 1
        assert not os.listdir(tmp_path)


def test_two_readers_of_standard_input_are_one_too_many(tool, monkeypatch):
    import io

    text = "NODELIST STATE\nn1 idle\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, _, err = tool("plan -m - --from - -N 1")
    assert code == 2
    assert "standard input can be read only once" in err


@pytest.mark.parametrize("text", ["1MiB", "1048576", "1024KiB", "1.048576MB", "1048576.0"])
def test_sizes_have_units(tool, text):
    words = "predict -m torus:4x4 --nodes 0-3 --pattern alltoall --json --bytes"
    assert tool(f"{words} {text}")[1] == tool(f"{words} 1048576")[1]


def test_too_many_ranks_a_node_are_remarked(tool):
    _, out, err = tool("plan -m shaheen2 -N 2 --ppn 500 --json")
    assert "2 nodes get more ranks than they have cores: nid" in err
    assert any("more ranks than they have cores" in w for w in json.loads(out)["warnings"])
    job = "--ppn 500 --pattern ring"
    for command in ("predict --nodes 12-13", "compare -N 2 --strategies compact"):
        assert "note: 2 nodes get more ranks than they" in tool(f"{command} -m shaheen2 {job}")[1]


def test_a_machine_with_holes_names_the_nearest_nodes(tool):
    code, _, err = tool("nodes info -m shaheen2 nid00003")
    assert code == 3
    assert "the nearest are nid00002 and nid00005" in err


def test_segments_of_no_replica_are_refused_by_name(tool):
    code, _, err = tool("plan -m tree:18x4 -N 36 --segment auto")
    assert (code, err) == (2, "nidmap: --segment auto needs --pattern training:…\n")
