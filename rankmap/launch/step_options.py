"""The options that start a step's ranks in order, for a filter that may only set options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from placement.errors import LaunchError
from rankmap.launch import LAUNCH
from rankmap.launch.launch_folder import remove_at_end

__all__ = ["step_options"]

#: Seconds that choosing an order may take while a launch waits.
_PATIENCE = "1"


def step_options(
    command: Sequence[str], words: Mapping[str, str], process: int
) -> tuple[dict[str, str], str]:
    """Return options of srun by name, and what is said of the order.

    Parameters
    ----------
    command : sequence of str
        srun as the user has written it.
    words : mapping of str to str
        What the job's comment says: ``pattern``, ``bytes``.
    process : int
        Id of srun: the order file is removed when it has ended.

    Raises
    ------
    NidmapError
        Where the order is unclear, or cannot be told by options.
    """
    from rankmap.commands.model import JobArguments
    from rankmap.commands.order import run, run_command

    given = [f"--{name}={words[name]}" for name in ("pattern", "bytes") if words.get(name)]
    line = [*given, "--patience", _PATIENCE, "--", *command]
    options = run.make_context("run", line).params
    job = JobArguments(*(options[one.name] for one in fields(JobArguments)))
    one = run_command(options["command"], job, options)
    _, made, expected = one.prepare()
    remove_at_end(made.path, process)
    before = set(command)
    new = [word for word in made.launch.argv if word not in before and word.startswith("--")]
    found = dict(word[2:].partition("=")[::2] for word in new)
    variables = {name: v for name, v in made.launch.env.items() if name != LAUNCH}
    if variables:
        if any(word.startswith("--export") for word in command):
            raise LaunchError("--export is set, and Cray MPICH's order needs variables")
        found["export"] = ",".join(["ALL", *(f"{k}={v}" for k, v in variables.items())])
    return found, one.order_words(made.order, expected.words)
