# SPDX-License-Identifier: Apache-2.0
"""Node lists against a real Slurm: its own folding, expanding and printing."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.nodelist import NodeList
from tests.effort import examples
from tests.real_slurm import needs_slurm, real_slurm, scrubbed_environment

PREFIXES = ["nid", "n", "r1n", "x-", "a.b"]
slurm_names = st.lists(
    st.builds(
        lambda prefix, number, width: f"{prefix}{number:0{width}d}",
        st.sampled_from(PREFIXES),
        st.one_of(st.integers(0, 12), st.integers(95, 105)),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=30,
)
ranges = st.lists(
    st.one_of(
        st.builds(str, st.integers(0, 30)),
        st.builds(
            lambda low, more, width: f"{low:0{width}d}-{low + more}",
            st.integers(0, 30),
            st.integers(0, 4),
            st.integers(1, 3),
        ),
    ),
    min_size=1,
    max_size=3,
).map(",".join)
words = st.lists(
    st.lists(ranges, min_size=1, max_size=4).map(
        lambda brackets: "".join(f"{'abcd'[k]}[{text}]" for k, text in enumerate(brackets))
    ),
    min_size=1,
    max_size=3,
).map(",".join)
WAYS = examples(100)


@pytest.fixture(scope="module")
def scontrol(tmp_path_factory):
    """Run ``scontrol show …`` with a slurm.conf that needs no daemon."""
    conf = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\n")
    env = {**scrubbed_environment(), "SLURM_CONF": str(conf), "LC_ALL": "C"}

    def show(what, text):
        done = subprocess.run(
            ["scontrol", "show", what, text], capture_output=True, text=True, env=env, timeout=600
        )
        return done.stdout.split() if done.returncode == 0 else None

    return show


@needs_slurm
@WAYS
@given(slurm_names)
def test_folding_is_slurms(scontrol, names):
    assert [NodeList(names).fold()] == scontrol("hostlist", ",".join(names))


@needs_slurm
@WAYS
@given(slurm_names)
def test_slurm_expands_our_folds(scontrol, names):
    assert scontrol("hostnames", NodeList(names).fold()) == names


@needs_slurm
@WAYS
@given(words)
def test_expanding_is_slurms(scontrol, text):
    """Up to four brackets in a word, in Slurm's own order."""
    assert list(NodeList.parse(text)) == scontrol("hostnames", text)


@needs_slurm
@pytest.mark.parametrize(
    "text", ["n[3-1]", "n[]", "n[1,,2]", "n[x]", "n[-1]", "n[1-3-5]", "n[[1]]"]
)
def test_slurm_refuses_what_we_refuse(scontrol, text):
    assert scontrol("hostnames", text) in (None, [])
    with pytest.raises(ParseError):
        NodeList.parse(text)


@needs_slurm
@pytest.mark.parametrize(
    ("text", "entries"),
    [("a1*3,b2\n", 4), ("a[2,1]\nc*2 # d\n", 3), ("a[1-2]*2,b*2\n", 4), ("a1,a2*2,a3\n", 4)],
)
def test_a_host_file_means_what_slurm_reads_in_it(tmp_path, text, entries):
    """srun prints how it read the file before it finds out that there is no controller."""
    (tmp_path / "hosts").write_text(text)
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=localhost\nMessageTimeout=2\n"
    )
    mine = NodeList.parse(text, "hosts")
    srun = subprocess.Popen(
        ["srun", "-vv", f"-n{entries}", "-m", "arbitrary", "-w", "./hosts", "true"],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        env={**scrubbed_environment(), "SLURM_CONF": str(tmp_path / "slurm.conf")},
    )
    try:
        read = next(line for line in srun.stderr if ": nodelist " in line)
    finally:
        srun.kill()
        srun.stderr.close()
        srun.wait(timeout=600)
    text_of_slurm = read.partition(": nodelist ")[2].partition(":")[2].strip()
    assert NodeList.parse(text_of_slurm) == mine


@needs_slurm
def test_what_slurm_prints_of_a_job_reads_as_its_nodes():
    """squeue, scontrol and sinfo of a real Slurm, pasted whole."""
    names = [f"nid{n:05d}" for n in range(40)]
    parts = {"workq": names, "debug": names[:8]}
    wanted = [*names[3:9], names[20]]
    with real_slurm(names, real=1, partitions=parts) as slurm:
        job = slurm.occupy(wanted, job_name="my (own) job")
        slurm.run(["sbatch", "-N40", "-J", "waits", "--wrap", "true"])

        def said(*argv):
            return slurm.run(argv).stdout

        for text in (
            said("squeue"),
            said("squeue", "-l"),
            said("squeue", "-h", "-o", "%N"),
            said("squeue", "-o", "%i %j %N %t"),
            said("squeue", "-j", str(job), "-O", "JobID,NodeList:90"),
            said("scontrol", "show", "job"),
            said("scontrol", "-o", "show", "job"),
            said("scontrol", "-d", "show", "job", str(job)),
            said("scontrol", "show", "hostnames", "nid[00003-00008,00020]"),
            said("sinfo", "-N", "-n", ",".join(wanted)),
            said("sinfo", "-N", "-l", "-n", ",".join(wanted)),
            said("sinfo", "-p", "workq", "-n", ",".join(wanted)),
        ):
            assert list(NodeList.parse(text)) == wanted, text
        for argv in (("squeue", "-h"), ("sinfo", "-h"), ("sinfo", "-h", "-N", "-o", "%N %t")):
            with pytest.raises(ParseError, match="a row of a table without its header"):
                NodeList.parse(said(*argv))
        assert list(NodeList.parse(said("scontrol", "show", "node"))) == names
        assert list(NodeList.parse(said("scontrol", "-o", "show", "node"))) == names
        assert list(NodeList.parse(said("scontrol", "show", "partition", "debug"))) == names[:8]
        assert set(NodeList.parse(said("sinfo"))) == set(names)
