# SPDX-License-Identifier: Apache-2.0
"""Jobs under a real Slurm: every rank says itself where it sits."""

import importlib.metadata
import json
import os
import re
import shlex
import sys
from collections import Counter

import numpy as np
import pytest

from nidmap.rankmap.emit import emit, format_of
from nidmap.rankmap.emit.process_mapping import mapping_vector
from nidmap.rankmap.launch.allocation import deal_ranks
from nidmap.rankmap.orders import arrange
from tests.rankmap.helpers import named, slots
from tests.real_slurm import needs_slurm, real_slurm

#: Configured out of order, so that Slurm's sorting shows.
NODES = named(45, 12, 20, 3)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
NIDMAP = f"{shlex.quote(sys.executable)} -m nidmap"
WHERE = """sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"'"""


def has_mpich():
    """Tell whether PyPI's mpich and mpi4py are both there."""
    try:
        return bool(importlib.metadata.version("mpi4py") and importlib.metadata.version("mpich"))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def slurm():
    with real_slurm(NODES, real=NODES, cores=16) as cluster:
        yield cluster


def placed(output):
    """Return the node of each rank, from lines of rank and node."""
    pairs = [line.split() for line in output.splitlines()]
    assert sorted(int(r) for r, _ in pairs) == list(range(len(pairs)))
    return [node for _, node in sorted(pairs, key=lambda pair: int(pair[0]))]


#: An srun of a site that drops the host file.
DROPPING = """#!/bin/sh
for word do
    shift
    case $word in --nodelist=*|--distribution=*) ;; *) set -- "$@" "$word";; esac
done
exec /usr/bin/srun "$@"
"""

#: What ends the line on an order where nobody says what machine this is.
UNKNOWN = "; its gain is not known: nidmaptest states no bandwidths\n"


def in_job(slurm, script, *options):
    """Run a shell script in a job of all nodes; return what it printed, without srun's own talk."""
    command = ["salloc", "-Q", "--exclusive", "-N4", *options, "bash", "-c", script]
    # Nothing to warn about: task/none binds nothing, and no program here needs PMI.
    bound = {"SLURM_CPU_BIND": "cores", "SLURM_MPI_TYPE": "none"}
    done = slurm.run(command, timeout=600, env={"PYTHONPATH": ROOT, **bound})
    talk = [line for line in done.stderr.splitlines(True) if not line.startswith("srun: ")]
    return done.stdout, "".join(talk)


@needs_slurm
@pytest.mark.parametrize("strategy", ["row-major", "morton", "hilbert"])
def test_a_job_under_the_host_file_has_every_rank_where_the_order_says(slurm, strategy):
    made = arrange(slots(named(20, 3, 45, 12), 4), "stencil:2x8", strategy)
    hosts = slurm.folder / f"{strategy}.hosts"
    hosts.write_text(emit(made, "slurm"))
    out, _ = in_job(slurm, f"SLURM_HOSTFILE={hosts} srun -n 16 {WHERE}")
    assert placed(out) == made.host_of_rank.tolist()


@needs_slurm
def test_run_starts_ranks_in_order_inside_an_allocation(slurm):
    script = f"{NIDMAP} run --pattern fft:4x4 --strategy morton -- srun -n 16 {WHERE}"
    out, said = in_job(slurm, script, "--ntasks-per-node=4")
    expected = arrange(slots(named(3, 12, 20, 45), 4), "fft:4x4", "morton")
    assert said.endswith(UNKNOWN)
    assert said.count("\n") == 1
    assert placed(out) == expected.host_of_rank.tolist()


@needs_slurm
def test_a_plain_srun_is_one_rank_a_node_and_its_ranks_see_no_host_file(slurm):
    show = """sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME${SLURM_HOSTFILE-}"'"""
    run = f"{NIDMAP} run --strict --patience 60 --nodes 'nid[00045,00003,00020,00012]'"
    out, said = in_job(slurm, f"{run} --pattern ring --strategy row-major -- srun {show}")
    assert placed(out) == named(45, 3, 20, 12)
    assert said.endswith(UNKNOWN)
    ended = "for k in $(seq 600); do ls -d nidmap-* >/dev/null 2>&1 || break; sleep 0.1; done; ls"
    out, _ = in_job(slurm, f"mkdir gone; cd gone; {run} --pattern ring -- srun true; {ended}")
    assert out == ""


@needs_slurm
def test_what_plan_wrote_is_launched_from_every_format(slurm):
    files = "plan.json", "MPICH_RANK_ORDER", "plan.hosts"
    place = slurm.folder / "planned"
    place.mkdir()
    job = "-m tree:50x2,bw=1 --pattern stencil:4x4"
    plan = f"{NIDMAP} plan {job} -N 4 --ppn 4 --from {','.join(NODES)} --deadline 1"
    slurm.run(["sh", "-c", f"cd {place} && {plan} --order-out made.json"], env={"PYTHONPATH": ROOT})
    made = json.loads((place / "made.json").read_text())
    order = slots(made["nodes"], made["counts"]).with_order(np.array(made["slots"]))
    for file in files:
        (place / file).write_text(emit(order, format_of(file)))
    run = f"{NIDMAP} run {job} --strict --patience 60 --order $file -- srun -n 16 {WHERE}"
    script = f"cd {place}; for file in {' '.join(files)}; do {run} > $file.out; done"
    _, said = in_job(slurm, script, "--ntasks-per-node=4")
    for file in files:
        assert placed((place / f"{file}.out").read_text()) == order.host_of_rank.tolist()
        assert f"order of stencil:4x4 from {file} on 4 nodes x 4; " in said


@needs_slurm
def test_a_slurm_without_a_default_pmi_is_remarked_once(slurm):
    run = f"unset SLURM_MPI_TYPE; {NIDMAP} run --patience 60 --pattern ring -- srun"
    _, said = in_job(slurm, f"{run} true")
    assert said.count("Slurm's MpiDefault is none") == 1
    _, said = in_job(slurm, f"{run} --mpi=pmi2 true")
    assert "MpiDefault" not in said


@needs_slurm
def test_run_takes_nodes_and_ranks_a_node_as_given(slurm):
    script = (
        f"{NIDMAP} run --nodes 'nid[00045,00003,00020]' --ppn 2,1,3 "
        "--pattern stencil:2x3 --strategy hilbert"
        f" -- srun -n 6 {WHERE}"
    )
    out, said = in_job(slurm, script)
    expected = arrange(slots(named(45, 3, 20), [2, 1, 3]), "stencil:2x3", "hilbert")
    assert said.endswith(UNKNOWN)
    assert said.count("\n") == 1
    assert placed(out) == expected.host_of_rank.tolist()


@needs_slurm
def test_a_dry_runs_command_line_works_when_pasted(slurm):
    script = (
        f"line=$({NIDMAP} run --pattern stencil:4x4 --strategy hilbert --dry-run --order-dir ."
        f" -- srun -n 16 {WHERE})"
        ' && eval "$line"'
    )
    out, said = in_job(slurm, script, "--ntasks-per-node=4")
    expected = arrange(slots(named(3, 12, 20, 45), 4), "stencil:4x4", "hilbert")
    assert placed(out) == expected.host_of_rank.tolist()
    assert "hilbert order of stencil:4x4 on 4 nodes x 4" in said


@needs_slurm
def test_the_cray_way_puts_slots_on_the_sorted_nodes(slurm):
    """Slurm's part is real; the library's (method 3: slot s is rank file[s]) is done by hand."""
    script = (
        f"{NIDMAP} run --mpi cray-mpich --nodes 'nid[00045,00003,00020,00012]' "
        "--pattern stencil:4x4"
        " --strategy morton -- srun -n 16 sh -c '"
        'echo "$SLURM_PROCID $SLURMD_NODENAME $MPICH_RANK_REORDER_METHOD";'
        ' if [ $SLURM_PROCID = 0 ]; then sed "s/^/file /" "$MPICH_RANK_REORDER_FILE"; fi\''
    )
    out, said = in_job(slurm, script, "--ntasks-per-node=4")
    file = [line[5:] for line in out.splitlines() if line.startswith("file ")]
    ranks = [int(r) for line in file if not line.startswith("#") for r in line.split(",")]
    seen = [line.split() for line in out.splitlines() if not line.startswith("file ")]
    hosts = {ranks[int(slot)]: node for slot, node, method in seen if method == "3"}
    expected = arrange(slots(named(45, 3, 20, 12), 4), "stencil:4x4", "morton")
    assert said.endswith(UNKNOWN)
    assert said.count("\n") == 1
    assert [hosts[r] for r in range(16)] == expected.host_of_rank.tolist()
    # The trap: read for the list as given, the same file would be another order.
    given = emit(expected, "mpich", "given")
    assert given != emit(expected, "mpich", "sorted")


@needs_slurm
def test_a_list_given_to_srun_comes_back_sorted(slurm):
    out, _ = in_job(slurm, f"srun -N4 -n 4 -w nid00045,nid00003,nid00020,nid00012 {WHERE}")
    assert placed(out) == named(3, 12, 20, 45)
    assert slots(NODES, 1).sorted().names.tolist() == named(3, 12, 20, 45)


#: A step whose ranks write to files where they are, since a busy slurmd may lose what is printed;
#: it is gone before the next one, which else takes what it finds free.
STEP = """
echo step {size}; mkdir deal
srun -n {size} sh -c 'echo $SLURMD_NODENAME > deal/$SLURM_PROCID'
cat deal/*; rm -r deal
for k in $(seq 600); do [ "$(squeue -h -s -j $SLURM_JOB_ID)" ] || break; sleep 0.1; done
"""


@needs_slurm
def test_srun_deals_as_we_say(slurm):
    """Ranks a node of steps of many sizes, on jobs with the same and with different CPUs a node."""
    for options, sizes in (
        (["-n", "38", "-N3"], ("38", "20", "7", "2")),
        (["--exclusive", "-N4"], ("30", "5", "64", "3", "9 -N2", "32 -N2", "7 -N3")),
    ):
        script = "echo cpus $SLURM_JOB_CPUS_PER_NODE $SLURM_JOB_NODELIST; rm -rf deal"
        script += "".join(STEP.format(size=size) for size in sizes)
        for _ in range(4):  # a busy slurmd may not start a step
            said = slurm.run(["salloc", "-Q", *options, "bash", "-c", script], timeout=600).stdout
            seen, expected = deals(said)
            if seen == expected:
                break
        assert seen == expected, said


def deals(output):
    """Return the ranks on each node of each step, as they were and as we say."""
    from nidmap.rankmap.launch.allocation import allocation

    first, *blocks = output.split("step ")
    _, cpus, nodes = first.split()
    job = allocation({"SLURM_JOB_NODELIST": nodes, "SLURM_JOB_CPUS_PER_NODE": cpus})
    seen, expected = [], []
    for block in blocks:
        asked, _, said = block.partition("\n")
        ranks, _, nodes = asked.partition(" -N")
        counts = Counter(said.split())
        many = int(nodes) if nodes else None
        deal = [counts[name] for name in job.nodes]
        seen += [deal, deal[:many]]
        expected.append(job.counts(int(ranks), nodes=many).tolist())
        expected.append(deal_ranks(int(ranks), job.cpus[:many]).tolist())
    return seen, expected


@needs_slurm
@pytest.mark.mpi
@pytest.mark.skipif(not has_mpich(), reason="mpi4py and mpich are not installed (extra [mpi])")
def test_ranks_of_a_real_mpi_are_where_the_order_says(slurm):
    program = (
        "from mpi4py import MPI; import os; c = MPI.COMM_WORLD; assert c.size == 8;"
        "print(c.rank, os.environ['SLURMD_NODENAME'], flush=True)"
    )
    script = (
        f"{NIDMAP} run --pattern stencil:2x4 --strategy morton -- "
        f"srun --mpi=pmi2 -n 8 {shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    )
    out, _ = in_job(slurm, script, "--ntasks-per-node=2")
    expected = arrange(slots(named(3, 12, 20, 45), 2), "stencil:2x4", "morton")
    assert placed(out) == expected.host_of_rank.tolist()
    assert np.bincount(expected.node_of_rank).tolist() == [2, 2, 2, 2]


@needs_slurm
def test_verify_compares_the_ranks_with_the_plan(slurm):
    script = (
        f"{NIDMAP} run --verify --patience 30 "
        f"--pattern stencil:4x4 --strategy morton -- srun -n 16 {WHERE}"
    )
    out, said = in_job(slurm, script, "--ntasks-per-node=4")
    expected = arrange(slots(named(3, 12, 20, 45), 4), "fft:4x4", "morton")
    first, order = said.splitlines(True)
    assert first == "nidmap: verified: all 16 ranks are where the plan says, on 4 nodes\n"
    assert order.endswith(UNKNOWN)
    assert placed(out) == expected.host_of_rank.tolist()


#: What srun itself would place ranks by, and what it leaves to the order.
OBEYED_BESIDES = "--ntasks-per-core=2 --ntasks-per-socket=8 --spread-job --use-min-nodes -E"


@needs_slurm
@pytest.mark.parametrize("mpi", ["other", "cray-mpich"])
def test_what_is_passed_on_leaves_the_ranks_where_the_order_says(slurm, mpi):
    words = f"--pattern stencil:2x8 --strategy morton --mpi {mpi} --verify --strict --patience 60"
    job = f"{NIDMAP} run {words} -- srun -n 16 {OBEYED_BESIDES} {WHERE}"
    out, said = in_job(slurm, job)
    assert len(placed(out)) == 16
    assert "verified: all 16 ranks are where the plan says, on 4 nodes" in said


@needs_slurm
def test_verify_finds_ranks_that_are_elsewhere(slurm):
    """A site's srun that drops the host file puts ranks where nobody planned them."""
    folder = slurm.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "srun").write_text(DROPPING)
    (folder / "srun").chmod(0o755)
    run = f"{NIDMAP} run --verify --patience 30 --pattern stencil:4x4 --strategy morton"
    script = f"PATH={folder}:$PATH; {run} -- srun -n 16 {WHERE}"
    out, said = in_job(slurm, script, "--ntasks-per-node=4")
    assert "of 16 ranks are not where the plan says, first rank" in said
    assert said.endswith(": default order\n")
    assert (
        placed(out)
        == arrange(slots(named(3, 12, 20, 45), 4), "ring", "row-major").host_of_rank.tolist()
    )
    strict = f"PATH={folder}:$PATH; {run} --strict -- srun -n 16 {WHERE}; echo rc $?"
    assert in_job(slurm, strict, "--ntasks-per-node=4")[0] == "rc 125\n"


@needs_slurm
def test_steps_smaller_than_the_job_and_of_several_cpus(slurm):
    sizes = [(8, "-N2 -n 8"), (3, "-n 3"), (8, "-n 8 -c 8")]
    run = f"{NIDMAP} run --strict --patience 60 --verify --pattern ring -- srun"
    # A step that is ending has its nodes, and srun prefers others for one smaller than the job.
    ended = 'until [ -z "$(squeue -h -s -j $SLURM_JOB_ID -o %i)" ]; do sleep 0.1; done'
    script = "".join(
        f"{ended}; {command} {options} {WHERE} || exit; echo end\n"
        for _, options in sizes
        for command in (run, "srun")
    )
    out, said = in_job(slurm, script)
    steps = out.split("end\n")[:-1]
    for (ranks, _), ordered, plain in zip(sizes, steps[::2], steps[1::2], strict=True):
        assert len(placed(ordered)) == ranks
        assert placed(ordered) == placed(plain)
    assert re.findall(r"verified: all (\d+) ranks", said) == ["8", "3", "8"]


@needs_slurm
@pytest.mark.mpi
@pytest.mark.skipif(not has_mpich(), reason="mpi4py and mpich are not installed (extra [mpi])")
@pytest.mark.parametrize("ppn", ["2", "1,3,2,2"])
def test_hydra_keeps_the_order_inside_slurm(slurm, ppn):
    """Its host file alone would not: Slurm starts the proxies on the nodes as it sorts them."""
    program = (
        "from mpi4py import MPI; import os; c = MPI.COMM_WORLD; assert c.size == 8;"
        "here = c.Split_type(MPI.COMM_TYPE_SHARED);"
        "node = os.environ['SLURMD_NODENAME'];"
        "os.write(1, f'{c.rank} {node} {here.size}\\n'.encode())"
    )
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    script = (
        f"{NIDMAP} run --strict --patience 60 --nodes 'nid[00045,00003,00020,00012]'"
        f" --ppn {ppn} --pattern stencil:2x4 --strategy morton -- {mpiexec} -bind-to user:0 -n 8"
        f" {shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    )
    out, said = in_job(slurm, script, "--ntasks-per-node=3")
    counts = [int(n) for n in ppn.split(",")] if "," in ppn else int(ppn)
    expected = arrange(slots(named(45, 3, 20, 12), counts), "stencil:2x4", "morton")
    assert said.endswith(UNKNOWN)
    assert said.count("\n") == 1
    rows = sorted((int(r), node, int(many)) for r, node, many in map(str.split, out.splitlines()))
    assert [node for _, node, _ in rows] == expected.host_of_rank.tolist()
    assert [many for _, _, many in rows] == expected.counts[expected.node_of_rank].tolist()


@needs_slurm
def test_slurm_tells_its_ranks_no_longer_mapping_than_is_counted_on(slurm):
    on = slots(named(3, 12, 20, 45), 2)
    made = on.with_order(np.random.default_rng(3).permutation(8))
    hosts = slurm.folder / "mapping.hosts"
    hosts.write_text(emit(made, "slurm"))
    program = os.path.join(os.path.dirname(__file__), "print_mapping.py")
    launch = f"srun --mpi=pmi2 -n 8 -w {hosts} -m arbitrary {sys.executable} {program}"
    out, _ = in_job(slurm, launch)
    # Slurm before 24.05 says that each rank has a node of its own.
    version = tuple(map(int, slurm.run(["srun", "--version"]).stdout.split()[1].split(".")[:2]))
    alone = "(vector,(0,8,1))"
    assert out.split() == [
        "mapping",
        alone if version < (24, 5) else mapping_vector(made.node_of_rank),
    ]
