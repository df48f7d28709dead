# SPDX-License-Identifier: Apache-2.0
"""``nidmap ab`` with launches whose times are known beforehand."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nidmap.placement.commands import run
from tests.workloads.samples import load

ROOT = Path(__file__).parents[3]
LOOP = ("--time-regex", "Loop time of ([0-9.]+)")


def left_over():
    """Return what lies in the working directory besides the output folder."""
    return [name for name in os.listdir(".") if not name.startswith("nidmap-ab-")]


def words_of(picture):
    """Return what stands in a picture, each word or line of it."""
    return set(re.findall(r"<text[^>]*>([^<]+)</text>", picture.read_text()))


def test_a_gain_is_found_before_the_last_block(slurm, ab):
    slurm.draw(gain=1.2)
    code, out, err = ab(*LOOP, "-o", "ab.csv")
    assert code == 0
    assert "plan against default: 1.2" in out
    assert "times faster (95 %: 1." in out
    assert "16 launches that count, by the program's own time" in out
    header, frame = load("ab.csv")
    assert (header["ended"], len(frame), frame["warmup"].sum()) == ("decided", 18, 2)
    assert (header["ranks"], header["nodes"]) == (16, 4)
    assert sorted(slurm.launches()) == ["default"] * 9 + ["ordered"] * 9
    assert left_over() == ["ab.csv"]  # no order file
    (folder,) = (name for name in os.listdir(".") if name.startswith("nidmap-ab-"))
    assert folder in err
    assert len(os.listdir(folder)) == 2 * 18
    assert "Loop time of nothing" in Path(folder, "block-000-plan.out").read_text()
    assert Path(folder, "block-000-plan.err").read_text() == "words besides\n"


def test_no_gain_takes_all_blocks_and_claims_nothing(slurm, ab):
    slurm.draw(gain=1.0, seed=3)
    code, out, _ = ab(*LOOP, "--blocks", "9", "--json")
    found = json.loads(out)
    (entry,) = found["comparisons"]
    assert (code, found["schema"], found["ended"]) == (0, "nidmap.ab/1", "complete")
    assert (entry["verdict"], entry["blocks"]) == ("no difference shown", 9)
    assert entry["low"] < 1 < entry["high"]
    assert found["looks"] == [8, 9]
    assert [arm["name"] for arm in found["arms"]] == ["default", "plan"]
    assert found["arms"][0]["members"] == list(range(16))
    assert sorted(found["arms"][1]["members"]) == list(range(16))


def test_a_loss_is_called_slower_and_to_the_end_looks_once(slurm, ab):
    slurm.draw(gain=0.8)
    code, out, _ = ab(*LOOP, "--blocks", "8", "--to-the-end", "--json")
    found = json.loads(out)
    assert (code, found["comparisons"][0]["verdict"]) == (0, "slower")
    assert (found["looks"], found["times"][0]["samples"]) == ([8], 8)


def test_rates_are_shown_as_rates(slurm, ab):
    slurm.draw(gain=0.8)  # of a rate: the ordered ones state the higher figure
    _, out, _ = ab(*LOOP, "--unit", "ns/day", "--blocks", "8")
    assert "plan against default: 1.2" in out
    assert "by the program's own rate" in out
    line = next(line for line in out.splitlines() if line.startswith("plan "))
    assert line.split()[1:3] == ["1.266", "ns/day"]  # the largest of what was drawn


def test_every_launch_gets_the_users_own_environment_and_no_standard_input(slurm, ab):
    ab("--blocks", "1", "--warmup", "0")
    lines = (slurm.folder / "launches").read_text().splitlines()
    assert sorted(line.strip() for line in lines) == ["default", "ordered"]


def test_samples_are_drawn_where_a_picture_is_wanted(slurm, ab):
    slurm.draw(gain=1.2)
    assert ab(*LOOP, "--blocks", "8", "-o", "ab.svg")[0] == 0
    assert {"default", "plan", "seconds of total"} <= words_of(Path("ab.svg"))
    assert len(load("ab.csv")[1]) == 18


def test_a_program_of_bench_has_its_own_timer(slurm, tmp_path, monkeypatch, capfd):
    (slurm.folder / "srun").write_text(
        '#!/bin/sh\nwhile [ $1 != nidmap ]; do shift; done\nexec "$@"\n'
    )
    (tmp_path / "nidmap").write_text(f'#!/bin/sh\nexec {sys.executable} -m nidmap "$@"\n')
    (tmp_path / "nidmap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    words = ["--nodes", "n[1-2]", "--ppn", "1", "--arm", "odd=odd.slots", "--blocks", "1"]
    Path("odd.slots").write_text("1\n0\n")
    program = ["nidmap", "bench", "alltoall", "--bytes", "64", "--repeat", "3"]
    assert run(["ab", *words, "--json", "--", "srun", "-n2", *program]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["timer"]["words"] == "the program's own time"
    _, frame = load(os.path.join(found["folder"], "samples.csv"))
    assert (frame["figure"] < frame["wall"]).all()


def test_a_prediction_stands_beside_its_measurement(slurm, ab):
    slurm.draw(gain=1.2)
    machine = ("-m", "dragonfly:groups=2,chassis=2,blades=4,nodes=4")
    order = (*machine, "--pattern", "fft:4x4", "--bytes", "1MB", "--strategy", "morton")
    code, out, err = ab(*LOOP, "--blocks", "8", "--json", order=order)
    (one,) = json.loads(out)["expected"]
    assert (code, one["arm"]) == (0, "plan")
    assert one["gain"]["low"] <= one["gain"]["likely"] <= one["gain"]["high"]
    inside = one["gain"]["low"] * 0.995 <= one["measured"] <= one["gain"]["high"] * 1.005
    assert one["covers"] == inside
    assert "nidmap: plan: morton order of fft:4x4 on 4 nodes x 4; no clear gain: expected" in err


def test_orders_from_files_are_arms(slurm, ab):
    slurm.draw(gain=1.2)
    shuffled = [*range(1, 16, 2), *range(0, 16, 2)]
    Path("odd.slots").write_text("".join(f"{slot}\n" for slot in shuffled))
    words = [*LOOP, "--blocks", "8", "--arm", "odd=odd.slots", "--json"]
    code, out, _ = ab(*words, order=())
    assert code == 0
    assert [arm["name"] for arm in json.loads(out)["arms"]] == ["default", "odd"]
    code, out, _ = ab(*words, order=("--order", "odd.slots"))
    arms = json.loads(out)["arms"]
    assert [arm["name"] for arm in arms] == ["default", "order", "odd"]
    assert arms[1]["members"] == arms[2]["members"] != arms[0]["members"]


def test_a_failing_program_ends_it_with_its_code(slurm, ab):
    slurm.act("[ $(wc -l < launches 2>/dev/null || echo 0) -lt 5 ] || exit 7\n")
    code, out, err = ab(*LOOP, "-o", "ab.csv")
    assert code == 7
    said, again = (line for line in err.splitlines() if "failed" in line)
    assert "launches that failed and were restarted: 2 of " in again
    assert "the program failed 3 times in a row (code 7) as " in said
    assert "in block 2, see nidmap-ab-" in said
    assert "5 finished samples are kept" in said
    header, frame = load("ab.csv")
    assert (header["ended"], len(frame)) == ("failed", 5)
    assert "not enough: at least 6 complete blocks" in out


def test_the_first_launch_may_fail(slurm, ab):
    slurm.act("kill -9 $$\n")
    code, out, err = ab(*LOOP)
    assert (code, out) == (137, "")
    assert "the program failed 3 times in a row (signal 9)" in err


#: Of the launches the fourth fails, the next one says no time, and so on.
FAILS = """
n=$(($(cat tries 2>/dev/null || echo 0) + 1))
echo $n > tries
[ $n != 4 ] || exit 139
[ $n != 5 ] || exit 0
[ $n != 9 ] || kill -11 $$
"""


def test_a_launch_that_fails_is_begun_anew_and_counted(slurm, ab):
    slurm.draw(gain=1.2)
    slurm.act(FAILS)
    code, out, err = ab(*LOOP, "--json", "-o", "ab.csv")
    found = json.loads(out)
    assert (code, found["ended"], found["comparisons"][0]["verdict"]) == (0, "decided", "faster")
    assert sum(found["retried"].values()) == 3
    assert found["retried"] == load("ab.csv")[0]["retried"]
    assert "launches that failed and were restarted: " in err
    names = os.listdir(found["folder"])
    assert len(names) == 2 * (18 + 3)
    assert sum("-retry-1." in name for name in names) == 4
    assert sum("-retry-2." in name for name in names) == 2


def test_a_timer_that_the_program_does_not_say_is_one_line(slurm, ab):
    code, out, err = ab("--time-regex", "Wall time: ([0-9.]+)", "-o", "ab.csv")
    assert (code, out) == (3, "")
    (said,) = (line for line in err.splitlines() if "--time-regex" in line)
    assert "nothing in it matches --time-regex" in said
    assert load("ab.csv")[0]["ended"] == "failed"


def test_a_budget_that_is_used_up_keeps_what_there_is(slurm, ab):
    code, _, err = ab("--budget", "0", "-o", "ab.csv")
    assert code == 0
    assert "ended early (budget); 1 finished samples are kept" in err
    assert load("ab.csv")[0]["ended"] == "budget"


def test_a_dry_run_prints_what_a_shell_can_run(slurm, ab):
    code, out, _ = ab("--blocks", "2", "--dry-run", "--order-dir", ".", "--output-dir", "out")
    lines = out.splitlines()
    assert (code, len(lines), slurm.launches()) == (0, 6, [])
    os.mkdir("out")
    for line in lines:
        subprocess.run(["sh", "-c", line], check=True)
    assert sorted(slurm.launches()) == ["default"] * 3 + ["ordered"] * 3
    assert sum("NIDMAP_LAUNCH=" in line for line in lines) == 3
    assert shlex.split(lines[0])[-1].startswith("2>out/block-000-")
    before = sorted(os.listdir())
    _, out, _ = ab("--blocks", "2", "--dry-run", "--json")
    assert sorted(os.listdir()) == before
    assert [one["block"] for one in json.loads(out)["launches"]] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("words", "order", "code", "says"),
    [
        ((), (), 2, "no --pattern given"),
        (("--arm", "a"), (), 2, "--arm a is not NAME=FILE"),
        (("--arm", "default=a.slots"), (), 2, "two arms are called default"),
        (("--time-regex", "("), None, 2, "--time-regex (:"),
        (("--time-regex", "Loop"), None, 2, "has no group"),
        (("--time-regex", "(x)", "--unit", "day"), None, 2, "neither a unit of time"),
        (("--unit", "ms"), None, 2, "--unit and --time-file need"),
        (("--time-file", "a.txt"), None, 2, "need --time-regex"),
        (("-o", "ab.txt"), None, 2, "samples are written as"),
        (
            (),
            ("--pattern", "stencil:4x4", "--strategy", "row-major"),
            1,
            "the order is the launcher's own",
        ),
        ((), ("--pattern", "stencil:4x5", "--strategy", "morton"), 2, ""),
        (("--arm", "a=none.slots"), (), 3, "none.slots"),
    ],
)
def test_wrong_wishes_are_one_line_and_start_nothing(slurm, ab, words, order, code, says):
    given = {} if order is None else {"order": order}
    got, out, err = ab(*words, **given)
    assert (got, out) == (code, "")
    assert says in err
    assert len(err.splitlines()) <= 2
    assert (slurm.launches(), os.listdir(".")) == ([], [])


def test_an_output_folder_with_files_is_left_alone(slurm, ab):
    os.mkdir("out")
    Path("out/mine").touch()
    code, _, err = ab("--output-dir", "out")
    assert (code, slurm.launches()) == (2, [])
    assert "--output-dir out is not empty" in err


def test_ranks_of_a_launch_start_no_launches(slurm, ab, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "4")
    code, _, err = ab()
    assert (code, slurm.launches()) == (2, [])
    assert "starts launches itself" in err
