# SPDX-License-Identifier: Apache-2.0
"""One line in the job script, under a real Slurm with its Lua plugins."""

import re
from pathlib import Path

import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.placement.commands.slurm import CLI_FILTER
from tests.real_slurm import needs_slurm, real_slurm

ROOT = Path(__file__).parents[3]
NODES = [f"nid{i:05d}" for i in range(16)]
MACHINE = "dragonfly:groups=4,chassis=1,blades=2,nodes=2"

#: A script of the site's own: it says that it ran, and refuses one name.
SITE = """
function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end
function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end
function slurm_cli_pre_submit(options, offset)
  io.stderr:write("site\\n")
  if options["job-name"] == "refused" then return slurm.ERROR end
  return slurm.SUCCESS
end
"""

#: Programs in nidmap's place, and what is said of them.
FAULTS = {
    "missing": ("/nowhere/nidmap", "not there"),
    "fails": ("false", "failed (code 1)"),
    "says nothing": ("true", "failed (code 0)"),
    "killed": (
        "sh -c 'echo nidmap.options/1; echo set exclude=nid00001; kill -9 $$'",
        "started as",
    ),
    "cut short": ("printf 'nidmap.options/1\\nset exclude=nid00001\\n'", "failed (code 0)"),
    "no space": ("sh -c 'echo nidmap.options/1 >/dev/full'", "failed"),
    "chatter": ("printf 'hello\\nnidmap.options/1\\ndone\\n'", "failed (code 0)"),
    "leaves a child": ("sh -c 'setsid sleep 20 &'", "failed (code 0)"),
    "wrong option": ("printf 'nidmap.options/1\\nset uid=1\\ndone\\n'", "answered 'uid'"),
}


@pytest.fixture(scope="module")
def slurm():
    with real_slurm(NODES, real=4, extra="CliFilterPlugins=lua\n") as cluster:
        cluster.env["PYTHONPATH"] = str(ROOT)
        shown = cluster.run(["scontrol", "show", "config"], check=False, timeout=600).stdout
        folder = re.search(r"PluginDir\s+= (\S+)", shown)
        if not folder or not Path(folder[1], "cli_filter_lua.so").exists():
            pytest.skip("this Slurm has no cli_filter/lua")
        yield cluster


def installed(slurm, *more):
    """Write the filter, with all the time that a slow computer may need."""
    command = ["slurm", "install", "--yes", "--dir", str(slurm.folder), "-m", MACHINE]
    command += ["--seconds", "600"]
    assert nidmap([*command, *more]) == 0


@pytest.fixture
def holes(slurm):
    """Nodes of which Slurm's own choice for two is one of either of two groups."""
    slurm.drain(["nid00000", "nid00002", "nid00005"])
    yield
    slurm.resume(["nid00000", "nid00002", "nid00005"])


def submitted(slurm, *options):
    """Submit a held job; return what was said of it, and what Slurm knows of it."""
    done = slurm.run(["sbatch", "-H", *options, "--wrap=true"])
    job = done.stdout.split()[-1]
    shown = slurm.run(["scontrol", "show", "job", job]).stdout
    slurm.run(["scancel", job])
    return done.stderr, dict(re.findall(r"(ReqNodeList|ExcNodeList|Switches)=(\S+)", shown))


@needs_slurm
def test_a_comment_leaves_the_groups_open_that_the_plan_uses(slurm, holes):
    installed(slurm)
    talk, job = submitted(slurm, "-N2", "-n4", "--comment=nidmap:strategy=compact")
    assert talk.endswith(
        "nidmap: compact: 12 nodes excluded; Slurm chooses in the 1 group that the plan uses, "
        "now nid[00008-00009]\n"
    )
    assert job["ExcNodeList"] == "nid[00000-00007,00012-00015]"
    talk, job = submitted(slurm, "-N2", "-n4", "--comment=nidmap:strategy=compact;pin=yes")
    assert "pinned to the nodes of the plan" in talk
    assert job["ReqNodeList"] == "nid[00008-00009]"


@needs_slurm
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["-N2", "--array=1-2"], "--array is set"),
        (["-N2", "-w", "nid[00002-00003]"], "--nodelist is set"),
        (["-n3"], "the number of nodes is not clear"),
    ],
)
def test_what_is_not_for_us_is_submitted_as_written(slurm, options, why):
    installed(slurm)
    talk, job = submitted(slurm, *options, "--comment=nidmap:strategy=compact")
    assert why in talk
    assert talk.count("\n") == 1
    assert job["ExcNodeList"] == "(null)"
    assert submitted(slurm, "-N2")[0] == ""


@needs_slurm
@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_is_submitted_as_written_whatever_nidmap_does(slurm, fault):
    command, why = FAULTS[fault]
    installed(slurm, "--command", command)
    talk, job = submitted(slurm, "-N2", "--comment=nidmap:strategy=compact")
    assert why in talk
    assert talk.count("\n") == 1
    assert (job["ReqNodeList"], job["ExcNodeList"]) == ("(null)", "(null)")


@needs_slurm
def test_a_nidmap_that_hangs_is_given_up(slurm):
    installed(slurm, "--seconds", "0.3", "--command", "sh -c 'sleep 3600'")
    talk, job = submitted(slurm, "-N2", "--comment=nidmap:strategy=compact")
    assert talk == "nidmap: no answer in 0.3 s: started as written\n"
    assert job["ExcNodeList"] == "(null)"


@needs_slurm
def test_steps_start_their_ranks_in_order(slurm):
    installed(slurm)
    # What srun does in a job of its own; the plan's figures may choose the default order.
    rank = "sh -c 'echo rank $SLURM_PROCID $SLURMD_NODENAME $SLURM_DISTRIBUTION'"
    script = f"#!/bin/sh\nsrun --cpu-bind=none --mpi=none -n8 {rank}\n"
    (slurm.folder / "job.sh").write_text(script)
    size = ["-N4", "-n8", "--ntasks-per-node=2", "-w", ",".join(NODES[:4])]
    comment = "--comment=nidmap:pattern=stencil:2x4;bytes=1MB"
    slurm.run(["sbatch", "-W", "-o", "out", *size, comment, "job.sh"])
    said = (slurm.folder / "out").read_text()
    ranks = re.findall(r"rank (\d) (\S+) (\S+)", said)
    assert sorted(rank for rank, _, _ in ranks) == list("01234567")
    assert sorted(node for _, node, _ in ranks) == sorted(NODES[:4] * 2)
    assert {way for *_, way in ranks} == {"arbitrary"}, said
    assert "nidmap: auto: " in said


@needs_slurm
def test_a_sites_own_script_runs_first_and_comes_back(slurm, holes, capsys):
    folder = ["--dir", str(slurm.folder)]
    path = slurm.folder / CLI_FILTER
    nidmap(["slurm", "remove", *folder])
    path.write_text(SITE)
    installed(slurm)
    talk, job = submitted(slurm, "-N2", "--comment=nidmap:strategy=compact")
    assert talk.startswith("site\nnidmap: compact")
    assert job["ExcNodeList"] != "(null)"
    assert slurm.run(["sbatch", "-J", "refused", "--wrap=true"], check=False).returncode
    assert nidmap(["slurm", "remove", *folder]) == 0
    assert path.read_text() == SITE
    assert nidmap(["slurm", "remove", *folder]) == 1
    path.unlink()
