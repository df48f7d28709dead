"""The scripts that Slurm's commands run at submission: written, chained and taken away again.

``cli_filter.lua`` is run by sbatch, salloc and srun themselves, with the user's
rights; it asks ``nidmap slurm constrain`` and ``nidmap slurm launch`` and gives
them so many seconds in all, whatever they start or leave behind.
``job_submit.lua`` is run inside slurmctld, where nothing may be started or waited
for: it only counts leaves. Both stand beside this module; a head with their
settings is written before them. A script that is there already is kept beside ours
and runs first.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from placement import __version__
from placement.commands.common import write_output
from placement.errors import OutputError, UsageError, printable

__all__ = ["CLI_FILTER", "JOB_SUBMIT", "cli_filter", "install", "job_submit", "remove"]

CLI_FILTER, JOB_SUBMIT = "cli_filter.lua", "job_submit.lua"

#: What the first line of a script of ours begins with.
_MARK = "-- nidmap"

_HEAD = f"""{_MARK} {{version}}: {{name}}, written by `nidmap slurm install`;
-- `nidmap slurm remove` takes it away. A script that was here before is beside it,
-- as {{kept}}, and runs first.

local kept = io.open({{path}})
if kept then
  kept:close()
  dofile({{path}})
end

"""


def cli_filter(folder: str, command: Sequence[str], seconds: float) -> str:
    """Return the text of ``cli_filter.lua``.

    Parameters
    ----------
    folder : str
        Where it will stand: a script that was there is looked for beside it.
    command : sequence of str
        What starts nidmap.
    seconds : float
        What a submission or a launch may wait for its answers.
    """
    settings = f"local NIDMAP = {_lua(shlex.join(command))}\n"
    settings += f'local SECONDS, CENTISECONDS = "{seconds:g}", {round(100 * seconds)}\n'
    return _script(folder, CLI_FILTER, settings)


def job_submit(folder: str, leaf: int) -> str:
    """Return the text of ``job_submit.lua``, for leaf switches of so many nodes."""
    return _script(folder, JOB_SUBMIT, f"local LEAF = {leaf}  -- nodes of a leaf switch\n")


def _script(folder: str, name: str, settings: str) -> str:
    path = _lua(os.path.join(os.path.abspath(folder), _kept_name(name)))
    head = _HEAD.format(version=__version__, name=name, kept=_kept_name(name), path=path)
    return head + settings + Path(__file__).with_name(name).read_text(encoding="utf-8")


def _kept_name(name: str) -> str:
    """Return what a site's own script is called while ours has its name."""
    return name.replace(".lua", ".site.lua")


def _lua(text: str) -> str:
    """Return a text as Lua writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def install(folder: str, name: str, text: str) -> str:
    """Write a script; one that is there and not ours is kept beside it. Return what was done.

    Raises
    ------
    UsageError
        Two scripts of the site's are there.
    OutputError
        It cannot be written.
    """
    path, kept = os.path.join(folder, name), os.path.join(folder, _kept_name(name))
    chained = ""
    if os.path.exists(path) and not _is_ours(path):
        if os.path.exists(kept):
            raise UsageError(f"{printable(path)} and {printable(kept)} are both there")
        _rename(path, kept)
        chained = f"; the script that was there is {kept} now, and runs first"
    write_output(text, path)
    return f"{path} written{chained}"


def remove(folder: str, name: str) -> str:
    """Take a script of ours away, put back what was there; return what was done, '' if nothing."""
    path, kept = os.path.join(folder, name), os.path.join(folder, _kept_name(name))
    if not _is_ours(path):
        return ""
    if os.path.exists(kept):
        _rename(kept, path)
        return f"{path} is the site's own again"
    try:
        os.unlink(path)
    except OSError as error:
        raise OutputError(f"cannot remove {printable(path)}: {error.strerror}") from None
    return f"{path} removed"


def _rename(one: str, other: str) -> None:
    try:
        os.rename(one, other)
    except OSError as error:
        raise OutputError(f"cannot rename {printable(one)}: {error.strerror}") from None


def _is_ours(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().startswith(_MARK)
    except OSError:
        return False
