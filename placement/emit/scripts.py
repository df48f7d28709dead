"""Job headers and launch lines: what a scheduler takes.

A header for another scheduler than the site's own is refused: a job that
sits in no queue helps nobody.
"""

from __future__ import annotations

from placement.emit.job import Emission, pbs_options, slurm_options
from placement.emit.lists import nid_ranges
from placement.errors import UsageError

__all__ = ["JOB_NODES", "aprun", "exclude", "inside_job", "pbs", "sbatch", "switches"]

#: What takes job scripts: its name in a message, and the format that fits it.
_BATCH = {
    "slurm": ("Slurm", "sbatch"),
    "pbs": ("PBS", "pbs"),
    "torque": ("Torque", "pbs"),
    "cobalt": ("Cobalt", "aprun"),
    "alps": ("ALPS (aprun)", "aprun"),
    "kubernetes": ("Kubernetes", "affinity"),
}

#: The variable in which a job finds its nodes, a list or a file; of others ``PBS_NODEFILE``.
JOB_NODES = {"slurm": "SLURM_JOB_NODELIST", "cobalt": "COBALT_PARTNAME", "pbs": "PBS_NODEFILE"}


def sbatch(plan: Emission) -> str:
    """Return an sbatch header that pins the job to the nodes."""
    return _slurm_script(plan, "sbatch")


def exclude(plan: Emission) -> str:
    """Return a softer header: any free nodes, but none outside the plan's part of the machine."""
    return _slurm_script(plan, "exclude")


def switches(plan: Emission) -> str:
    """Return a softer header: as few leaf switches as the plan uses, for ten minutes' wait."""
    return _slurm_script(plan, "switches")


def aprun(plan: Emission) -> str:
    """Return an ``aprun`` command line on these nodes (candidates: ALPS orders them itself)."""
    _refuse_other(plan, ("alps", "torque", "cobalt", "pbs"), "aprun")
    return _aprun_line(plan, nid_ranges(tuple(sorted(plan.nids)))) + "\n"


def pbs(plan: Emission) -> str:
    """Return a PBS header (``select`` by host; Torque's ``nodes`` where the site runs Torque)."""
    _refuse_other(plan, ("pbs", "torque", "alps"), "pbs")
    options = [f"#PBS {option}" for option in pbs_options(plan.job, plan.batch)]
    return _script(plan, options, "pbs")


def inside_job(choosing: str, batch: str) -> str:
    """Return the command that chooses among the nodes which the job got.

    Parameters
    ----------
    choosing : str
        The command without ``--from``.
    batch : str
        What takes the job's script; '' is taken for Slurm.
    """
    return f'{choosing} --from "${JOB_NODES.get(batch or "slurm", "PBS_NODEFILE")}"'


def _slurm_script(plan: Emission, form: str) -> str:
    _refuse_other(plan, ("slurm",), form)
    return _script(plan, [f"#SBATCH {option}" for option in slurm_options(plan.job)], "slurm")


def _refuse_other(plan: Emission, fitting: tuple[str, ...], form: str) -> None:
    """Refuse a header for another scheduler than the site's."""
    if plan.batch and plan.batch not in fitting:
        runs, other = _BATCH.get(plan.batch, (plan.batch, "nodelist"))
        raise UsageError(
            f"--format {form} does not fit: this site runs {runs}", f"use --format {other}"
        )


def _script(plan: Emission, header: list[str], scheduler: str) -> str:
    remarks = [f"# {line}" for line in plan.remarks]
    launch = _launch_inside(plan, scheduler) if plan.job.slack else []
    return "\n".join(["#!/bin/bash", *remarks, *header, *launch]) + "\n"


def _launch_inside(plan: Emission, scheduler: str) -> list[str]:
    """Return the lines that choose nodes out of those the job got, and start the program there."""
    choose, job = inside_job(plan.choosing, scheduler), plan.job
    lines = [f"# the job gets {job.count + job.slack} nodes and uses {job.count}: chosen inside it"]
    if scheduler == "slurm":
        ranks = f"--nodes={job.count} --ntasks={job.ranks} --ntasks-per-node={job.ppn or 1}"
        launch = f'srun {ranks} --nodelist="$nodes" ./app'
        return [*lines, f"nodes=$({choose}) || exit", launch]
    if plan.scheduler == "alps":
        return [*lines, f"nids=$({choose} --format nids) || exit", _aprun_line(plan, '"$nids"')]
    # PALS takes each host once; Hydra and Open MPI count a host's lines as its slots.
    form, ppn = ("lines", f" --ppn {job.ppn or 1}") if plan.scheduler == "pbs" else ("hostfile", "")
    return [
        *lines,
        "hosts=$(mktemp) || exit",
        f'{choose} --format {form} > "$hosts" || exit',
        f'mpiexec -n {job.ranks}{ppn} --hostfile "$hosts" ./app',
    ]


def _aprun_line(plan: Emission, nids: str) -> str:
    return f"aprun -L {nids} -n {plan.job.ranks} -N {plan.job.ppn or 1} ./app"
