# SPDX-License-Identifier: Apache-2.0
"""Runs one Slurm command so that it can neither hang, flood nor mislead us.

What `nidmap.placement.support.child` sees to, and besides LC_ALL=C and UTC, and an environment
without the variables by which a user's habits would change the answer
(``SQUEUE_PARTITION=nope`` makes squeue print nothing, with exit code 0).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence

from nidmap.placement.errors import LaunchError
from nidmap.placement.support.child import ChildAnswer, Deadline, run_child

#: Seconds that Slurm has to answer a question, however many commands it takes.
TIMEOUT = 4.5

#: Variables of Slurm's commands all begin so …
_STEERING = ("SLURM", "SBATCH_", "SALLOC_", "SRUN_", "SINFO_", "SQUEUE_", "SCONTROL_", "SACCT_")

#: … and these say which cluster is asked and who asks.
_KEPT = (
    *("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT"),
    *("SLURM_SACK_SOCKET", "SLURM_SACK_KEY", "SLURM_SACK_JWKS"),
)


class NoSlurm(LaunchError):  # noqa: N818  # as its base says, which is what callers catch
    """There is no Slurm on this host: no command, or no configuration."""


def slurm_deadline() -> Deadline:
    """Return the time, `TIMEOUT` from now, by which Slurm must have answered."""
    return Deadline(TIMEOUT)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without variables that change Slurm's answers."""
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or not k.startswith(_STEERING)}
    return {**kept, "LC_ALL": "C", "LANG": "C", "TZ": "UTC0"}


def ask_slurm(
    command: Sequence[str],
    *,
    script: str | None = None,
    deadline: Deadline | None = None,
    fails: bool = False,
) -> ChildAnswer:
    """Run one Slurm command and return its output.

    `command`: program and arguments; no shell sees them. `script`: what it gets on standard
    input; None means nothing. `deadline`: by when it must have answered; None means `TIMEOUT`
    from now. `fails`: True where a non-zero exit code is an answer too, to be looked at by the
    caller; the Slurm that cannot be reached is an error in any case.
    """
    program = shutil.which(command[0])
    if program is None:
        hint = "load Slurm's module, run this on a login node, or plan from a dump"
        raise NoSlurm(f"{command[0]} is not on PATH", hint)
    answer = run_child(
        [program, *command[1:]],
        clean_environment(),
        deadline or slurm_deadline(),
        name=command[0],
        script=script or "",
        late_hint="Slurm is down or busy: try `scontrol ping`, or plan from a dump",
    )
    if answer.code:
        _refuse_unreachable(answer, command[0])
        if not fails:
            what = f"{command[0]} failed (exit code {answer.code})"
            hint = f"try it by hand: {' '.join(command[:3])}"
            raise LaunchError(f"{what}: {answer.complaint or 'no message'}", hint)
    return answer


def _refuse_unreachable(answer: ChildAnswer, name: str) -> None:
    """Raise if the command could not reach slurmctld."""
    text = answer.messages.lower()
    if "configuration source" in text or "resolve_ctls" in text:
        hint = "run this on a login node, set SLURM_CONF, or plan from a dump"
        raise NoSlurm(f"{name} finds no Slurm configuration on this host", hint)
    signs = ("unable to contact slurm controller", "connection refused", "zero bytes were")
    if any(sign in text for sign in signs):
        hint = "try `scontrol ping`, or plan from a dump"
        raise LaunchError(f"Slurm is down: {name} says {answer.complaint!r}", hint)


def slurm_settings(deadline: Deadline | None = None) -> dict[str, str]:
    """Return Slurm's settings by name, such as ``TopologyPlugin``, ``SLURM_VERSION``.

    `deadline`: until when Slurm may answer; None means the usual few seconds.
    """
    answer = ask_slurm(["scontrol", "show", "config"], deadline=deadline)
    pairs = (line.partition("=") for line in answer.output.splitlines())
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in Slurm's own version string; () if it prints none.

    `text`: what ``slurmctld -V`` prints, or the setting ``SLURM_VERSION``.
    """
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in match.groups() if part) if match else ()
