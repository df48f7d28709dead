# SPDX-License-Identifier: Apache-2.0
"""The hosts of a PBS job from PBS itself, if its node file names only the first.

So it is where a job's script runs on a service node (MOM), and where a site writes the file for
one chunk. ``qstat -f`` has all of them in ``exec_host``, each with its CPUs.
"""

from __future__ import annotations

import functools
import shutil
from collections import Counter
from collections.abc import Mapping

from nidmap.placement.errors import LaunchError, NidmapError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.child import Deadline, run_child

#: Seconds in which qstat must have answered.
_PATIENCE = 5.0


def hosts_of_job(env: Mapping[str, str]) -> tuple[dict[str, int], str]:
    """Return a job's hosts and CPUs from ``qstat -f``, or none and the reason."""
    job, program = env.get("PBS_JOBID", ""), shutil.which("qstat", path=env.get("PATH", ""))
    if not job:
        return {}, "no PBS_JOBID says which job to ask for"
    if program is None:
        return {}, "there is no qstat to ask for more"
    try:
        text = _ask(program, job, tuple(env.items()))
        hosts = Counter(NodeList.parse(text, f"qstat -f {job}"))
    except NidmapError as error:
        return {}, str(error)
    return dict(hosts), "" if hosts else f"qstat -f {job} has no exec_host"


@functools.lru_cache(4)
def _ask(program: str, job: str, env: tuple[tuple[str, str], ...]) -> str:
    """Return the lines of a job that say where it runs; some versions need two attempts."""
    answer = run_child([program, "-f", job], dict(env), Deadline(_PATIENCE), name="qstat")
    if answer.code:
        why = answer.complaint or "no message"
        raise LaunchError(f"qstat -f {job} failed (exit code {answer.code}): {why}")
    return answer.output if "exec_host" in answer.output else ""
