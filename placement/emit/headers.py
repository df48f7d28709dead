"""Job headers and launch lines: what a scheduler takes.

A header for another scheduler than the site's own is refused: a job that
sits in no queue helps nobody.
"""

from __future__ import annotations

from placement.emit import Emission, emitter
from placement.emit.lists import nid_ranges
from placement.errors import UsageError

__all__ = ["aprun", "exclude", "pbs", "sbatch", "switches"]

_SCHEDULERS = {
    "slurm": "Slurm",
    "pbs": "PBS",
    "torque": "Torque",
    "cobalt": "Cobalt",
    "alps": "ALPS (aprun)",
}

#: Which header fits which scheduler, for the hint.
_FITTING = {"slurm": "sbatch", "pbs": "pbs", "torque": "pbs", "cobalt": "aprun", "alps": "aprun"}


@emitter("sbatch")
def sbatch(plan: Emission) -> str:
    """Return a ready sbatch header that pins the job to the nodes."""
    _needs(plan, ("slurm",), "sbatch")
    head = [*_slurm_size(plan), f"#SBATCH --nodelist={plan.nodes.fold()}"]
    body = _choose_inside(plan)
    return _script(plan, head, body)


@emitter("exclude")
def exclude(plan: Emission) -> str:
    """Return a softer header: any free nodes, but none outside the plan's groups."""
    _needs(plan, ("slurm",), "exclude")
    head = _slurm_size(plan)
    if plan.outside:
        head.append(f"#SBATCH --exclude={plan.outside.fold(sort=True)}")
    return _script(plan, head, _choose_inside(plan))


@emitter("switches")
def switches(plan: Emission) -> str:
    """Return a softer header: as few leaf switches as the plan uses, for ten minutes' wait."""
    _needs(plan, ("slurm",), "switches")
    head = [*_slurm_size(plan), f"#SBATCH --switches={plan.switches}@00:10:00"]
    return _script(plan, head, _choose_inside(plan))


@emitter("aprun")
def aprun(plan: Emission) -> str:
    """Return an ``aprun`` command line on these nodes (candidates: ALPS orders them itself)."""
    _needs(plan, ("alps", "torque", "cobalt", "pbs"), "aprun")
    nids = nid_ranges(tuple(sorted(plan.nids)))
    per_node = plan.ppn or 1
    return f"aprun -L {nids} -n {len(plan.nodes) * per_node} -N {per_node} ./app\n"


@emitter("pbs")
def pbs(plan: Emission) -> str:
    """Return a PBS header (``select`` by host; Torque's ``nodes`` where the site runs Torque)."""
    _needs(plan, ("pbs", "torque", "alps"), "pbs")
    if plan.scheduler in ("torque", "alps"):
        per_node = f":ppn={plan.ppn}" if plan.ppn else ""
        chunk = "+".join(f"{name}{per_node}" for name in plan.nodes)
        head = [f"#PBS -l nodes={chunk}"]
    else:
        ranks = f":mpiprocs={plan.ppn}" if plan.ppn else ""
        chunk = "+".join(f"1:host={name}{ranks}" for name in plan.nodes)
        head = [f"#PBS -l select={chunk}", "#PBS -l place=scatter:excl"]
    return _script(plan, head, _choose_inside(plan))


def _needs(plan: Emission, fitting: tuple[str, ...], name: str) -> None:
    """Refuse a header for another scheduler than the site's."""
    if plan.scheduler and plan.scheduler not in fitting:
        runs = _SCHEDULERS.get(plan.scheduler, plan.scheduler)
        hint = _FITTING.get(plan.scheduler, "nodelist")
        raise UsageError(
            f"--format {name} does not fit: this site runs {runs}", f"use --format {hint}"
        )


def _slurm_size(plan: Emission) -> list[str]:
    size = [f"#SBATCH --nodes={len(plan.nodes)}"]
    if plan.ppn:
        size.append(f"#SBATCH --ntasks-per-node={plan.ppn}")
    return [*size, "#SBATCH --exclusive"]


def _choose_inside(plan: Emission) -> list[str]:
    """Return the lines that choose the nodes inside a job that got `slack` more."""
    if not plan.slack:
        return []
    return [
        f"# the job holds {plan.slack} nodes more than it uses: choose inside it",
        f"nodes=$({plan.inside})",
        f'srun --nodes={len(plan.nodes) - plan.slack} --nodelist="$nodes" ./app',
    ]


def _script(plan: Emission, head: list[str], body: list[str]) -> str:
    remarks = [f"# {line}" for line in plan.remarks]
    return "\n".join(["#!/bin/bash", *remarks, *head, *body]) + "\n"
