"""What a launch keeps, what is read back of it, and what ranks say of themselves."""

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import LaunchError, NidmapError, ParseError
from rankmap.commands.job import _read_processes, stated_ranks
from rankmap.commands.score import score
from rankmap.launch.job import RunRequest, read_job
from rankmap.launch.launch_folder import (
    FILES,
    StoredLaunch,
    discard_launch,
    find_launches,
    store_answers,
    store_launch,
)
from tests.rankmap.helpers import levelled

ENV = {
    "SLURM_JOB_NODELIST": "nid[00012-00015]",
    "SLURM_TASKS_PER_NODE": "4(x4)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "4711",
    "SLURM_CPU_BIND": "cores",
}
COMMAND = ("srun", "-n", "16", "./app")


def launched(folder, mpi="other", strategy="morton"):
    """Prepare a launch and keep it."""
    wish = RunRequest(pattern="stencil:4x4", strategy=strategy, order_dir=str(folder), mpi=mpi)
    made = read_job(COMMAND, wish, ENV).prepared()
    store_launch(made, "4711", COMMAND, ("shaheen2",))
    return made


@pytest.mark.parametrize("mpi", ["other", "cray-mpich"])
def test_what_is_kept_comes_back(tmp_path, mpi):
    made = launched(tmp_path, mpi)
    (kept,) = find_launches("4711", [str(tmp_path), str(tmp_path / "." / "")])
    assert kept.path == made.path
    assert kept.rank_nodes() == made.rank_nodes
    assert levelled(kept.order()) == levelled(made.laid)
    assert kept.said is None
    assert os.stat(os.path.join(os.path.dirname(made.path), FILES[0])).st_mode & 0o077 == 0
    store_answers(made.path, made.rank_nodes)
    assert find_launches("4711", [str(tmp_path)])[0].said == made.rank_nodes
    discard_launch(made.path)
    assert list(tmp_path.iterdir()) == []


def test_launches_of_a_job_stand_in_the_order_of_their_time(tmp_path):
    first, second = launched(tmp_path), launched(tmp_path, strategy="hilbert")
    assert [kept.path for kept in find_launches("4711", [str(tmp_path)])] == [
        first.path,
        second.path,
    ]
    assert find_launches("471", [str(tmp_path)]) == []
    assert find_launches("4711", [str(tmp_path / "none")]) == []


@given(text=st.text(max_size=40))
def test_garbage_beside_an_order_is_an_error_with_its_name(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("kept") / "nidmap-7-x"
    folder.mkdir()
    (folder / FILES[0]).write_text(text)
    with pytest.raises(ParseError, match=FILES[0]):
        find_launches("7", [str(folder.parent)])


def test_an_order_file_that_is_gone_is_an_error(tmp_path):
    made = launched(tmp_path)
    os.unlink(made.path)
    (kept,) = find_launches("4711", [str(tmp_path)])
    with pytest.raises(ParseError):
        kept.rank_nodes()


def kept_as(path="/x/hosts", variables=("SLURM_PROCID",)):
    return StoredLaunch(path, {"variables": list(variables)}, None)


def test_only_ranks_that_name_the_order_file_are_its_own():
    mine = {"SLURMD_NODENAME": "n1", "SLURM_PROCID": "3", "NIDMAP_LAUNCH": "/x/hosts"}
    other = {**mine, "SLURM_PROCID": "4", "NIDMAP_LAUNCH": "/y/hosts"}
    silent = {"SLURMD_NODENAME": "n2", "SLURM_PROCID": "5"}
    said = [mine, mine, other, silent]
    assert stated_ranks(said, kept_as(), alone=False) == {3: ("n1", "")}
    assert stated_ranks(said, kept_as(), alone=True) == {3: ("n1", ""), 5: ("n2", "")}


def test_a_rank_on_two_nodes_is_two_launches():
    said = [{"SLURMD_NODENAME": n, "SLURM_PROCID": "3"} for n in ("n1", "n2")]
    with pytest.raises(LaunchError, match="two launches"):
        stated_ranks(said, kept_as(), alone=True)


@given(st.lists(st.text(max_size=30)))
def test_whatever_processes_have_in_their_environment_is_read(lines):
    for process in _read_processes(lines, "7"):
        assert process["SLURM_JOB_ID"] == "7"
    assert isinstance(stated_ranks(_read_processes(lines, "7"), kept_as(), alone=True), dict)


def test_the_step_that_asks_is_not_among_the_answers():
    own = "SLURM_JOB_ID=7\tSLURM_STEP_ID=1\tSLURM_PROCID=0\tSLURMD_NODENAME=n1\t"
    step = own.replace("STEP_ID=1", "STEP_ID=0")
    client = own.replace("SLURM_STEP_ID=1\t", "")
    found = _read_processes([own, step, client, "self=1", step.replace("ID=7", "ID=8")], "7")
    assert [p["SLURM_STEP_ID"] for p in found] == ["0"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--job", "4711; rm"], 2),
        (["--job", "4711", "--order", "a.slots"], 2),
        (["--ask", "--order", "a.slots"], 2),
        (["--job", "4711"], 4),
    ],
)
def test_a_job_that_cannot_be_asked_for_is_an_error(monkeypatch, tmp_path, words, code):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(score, words)
    assert isinstance(done.exception, NidmapError)
    assert done.exception.exit_code == code


def test_the_plan_is_json_on_one_line(tmp_path):
    made = launched(tmp_path)
    with open(os.path.join(os.path.dirname(made.path), FILES[0])) as stream:
        known = json.loads(stream.read())
    assert known["command"] == list(COMMAND)
    assert np.array_equal(known["counts"], [4, 4, 4, 4])
