# SPDX-License-Identifier: Apache-2.0
"""Headers that leave the nodes to Slurm: on a real Slurm they lead where they say."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from nidmap.placement.commands import run
from nidmap.placement.nodelist import NodeList
from nidmap.placement.slurm import command
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.predict import Job, Predictor
from tests.rankmap.helpers import time_of
from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import HANGS

ROOT = Path(__file__).parents[3]
MACHINE = "dragonfly:groups=4,chassis=1,blades=4,nodes=4"
NAMES = [f"nid{i:05d}" for i in range(64)]
TREE = (
    "".join(f"SwitchName=l{k} Nodes={','.join(NAMES[4 * k : 4 * k + 4])}\n" for k in range(16))
    + "".join(f"SwitchName=g{g} Switches=l[{4 * g}-{4 * g + 3}]\n" for g in range(4))
    + "SwitchName=root Switches=g[0-3]\n"
)
SENT = ["--pattern", "alltoall", "--bytes", "1MB"]


@pytest.fixture(scope="module", params=["none", "tree", "dragonfly"])
def slurm(request):
    conf = None if request.param == "none" else TREE
    extra = "CliFilterPlugins=lua\n"
    with real_slurm(
        NAMES, plugin=request.param, topology_conf=conf, real=0, extra=extra
    ) as cluster:
        (cluster.folder / "cli_filter.lua").write_text(
            "function slurm_cli_setup_defaults(a, b) return slurm.SUCCESS end\n"
            "function slurm_cli_pre_submit(a, b) return slurm.SUCCESS end\n"
            "function slurm_cli_post_submit(a, b, c) return slurm.SUCCESS end\n"
        )
        cluster.env["PYTHONPATH"] = str(ROOT)
        cluster.plugin = request.param
        yield cluster


@pytest.fixture(autouse=True)
def asked(slurm, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    monkeypatch.setattr(command, "TIMEOUT", HANGS)


def started(slurm, *words):
    """Start a job and return the nodes that it gets."""
    done = slurm.run(["salloc", "--no-shell", *words])
    number = done.stderr.split("Granted job allocation ")[1].split()[0]
    nodes = slurm.run(["squeue", "-h", "-j", number, "-o", "%N"]).stdout.strip()
    slurm.run(["scancel", number])
    return set(NodeList.parse(nodes))


def header(text):
    return re.findall(r"^#SBATCH (\S+)", text, re.MULTILINE)


def excluded(text):
    match = re.search(r"--exclude=(\S+)", text)
    return set(NodeList.parse(match[1])) if match else set()


@needs_slurm
@pytest.mark.parametrize(("count", "drained"), [(6, 0), (6, 25), (16, 10), (16, 25)])
def test_slurm_chooses_under_a_header_what_the_header_says(slurm, tmp_path, count, drained):
    script = tmp_path / "job.sh"
    model = Predictor(parse_spec(MACHINE), Job("alltoall", 1, 1e6, algorithm=""))
    for more in (SENT, ["--strategy", "compact"]):
        slurm.free()
        slurm.drain(random.Random(drained).sample(NAMES, drained))
        words = ["plan", "-m", MACHINE, "-N", str(count), "--from", "idle", "--format", "exclude"]
        assert run([*words, *more, "-o", str(script)]) == 0
        text = script.read_text()
        said = re.search(r"Slurm chooses in .*, now (\S+?)(?::? |\n)", text)
        got = started(slurm, *header(text))
        assert got == set(NodeList.parse(said[1])), text
        slurm.free()
        slurm.drain(random.Random(drained).sample(NAMES, drained))
        plain = started(slurm, f"-N{count}", "--exclusive")
        times = [
            time_of(model, np.flatnonzero(np.isin(NAMES, list(nodes)))) for nodes in (got, plain)
        ]
        if more is SENT:
            assert times[0] < times[1] if excluded(text) else got == plain
            assert bool(excluded(text)) != ("# no nodes excluded" in text)
        elif got == plain:
            assert ": as it does anyway" in text


@needs_slurm
def test_one_line_in_the_job_script_excludes_only_where_that_wins(slurm):
    slurm.free()
    words = ["slurm", "install", "--yes", "--dir", str(slurm.folder), "-m", MACHINE]
    assert run([*words, "--seconds", "600"]) == 0
    try:
        for count in (6, 16):
            comment = "--comment=nidmap:pattern=alltoall;bytes=1MB"
            job = [f"-N{count}", "--exclusive"]
            held = slurm.run(["sbatch", "-H", "--parsable", *job, comment, "--wrap=true"])
            shown = slurm.run(["scontrol", "show", "job", held.stdout.strip()]).stdout
            assert "Switches=" not in shown
            (left_out,) = re.findall(r"ExcNodeList=(\S+)", shown)
            plain = started(slurm, *job)
            slurm.free()
            if "submitted as written" in held.stderr:
                assert left_out == "(null)"
                continue
            got = started(slurm, *job, f"--exclude={left_out}")
            slurm.free()
            said = re.search(r"now (\S+):", held.stderr)
            assert got == set(NodeList.parse(said[1])) != plain
        outside = slurm.run(["srun", "--test-only", "-N1", comment, "true"], check=False).stderr
        assert "nidmap: an srun outside a job is not planned" in outside
        wrong = slurm.run(["sbatch", "-H", "-N1", "--comment=nidmap:pin=maybe", "--wrap=true"])
        assert "pin=maybe is neither yes nor no: as written" in wrong.stderr
    finally:
        run(["slurm", "remove", "--dir", str(slurm.folder)])
