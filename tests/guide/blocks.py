# SPDX-License-Identifier: Apache-2.0
"""Console blocks of the guide: found in a page, run in one shell, written with what they print.

A block ```` ```console ```` holds commands behind ``$`` and what they print. All blocks of a page
are run in turn by one shell, in a folder that holds the files of ``examples/``. A line ``…`` of
the page stands for lines that are left out. In a block ```` ```console measured ```` figures
differ from run to run, so that only its words are compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^```console( measured)?\n(.*?)^```$", re.S | re.M)
_FIGURE = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?(?: [kMG]?B\b| [mun]?s\b)?")
#: What a measured run may decide otherwise: which of equal orders, what is least certain on a
#: machine as busy as it was, and whether a range held.
_CHANCE = re.compile(
    r"(?<=auto: )[\w-]+(?= order)|(?<=largest uncertainty: )[^);]*|(?<=measured #: ).*"
)
_MARK = "\036"

#: Seconds that one command may take, on a busy machine.
PATIENCE = 400


@dataclass(frozen=True)
class Command:
    """A command of a page and the lines that stand under it."""

    text: str
    printed: list[str]
    measured: bool

    def holds(self, lines: list[str]) -> bool:
        """Say whether what the page has is what a run printed."""
        there = [self._form(line) for line in self.printed]
        came = [self._form(line) for line in lines]
        if "…" not in there:
            return there == came
        cut = there.index("…")
        head, tail = there[:cut], there[cut + 1 :]
        return (
            len(came) >= len(head) + len(tail)
            and came[: len(head)] == head
            and came[len(came) - len(tail) :] == tail
        )

    def _form(self, line: str) -> str:
        if not self.measured:
            return line
        return _CHANCE.sub("…", " ".join(_FIGURE.sub("#", line).split()))

    def cut(self, lines: list[str]) -> list[str]:
        """Return the lines of a run as the page shows them: left out what it leaves out."""
        if "…" not in self.printed:
            return lines
        cut = self.printed.index("…")
        tail = len(self.printed) - cut - 1
        if len(lines) <= cut + tail:
            return lines
        return [*lines[:cut], "…", *lines[len(lines) - tail :]]


def commands(page: str) -> list[list[Command]]:
    """Return the commands of each console block of a page."""
    return [_commands(body, bool(loose)) for loose, body in _BLOCK.findall(page)]


def _commands(body: str, measured: bool) -> list[Command]:
    found: list[Command] = []
    more = False
    for line in body.splitlines():
        if more:
            last = found[-1]
            found[-1] = Command(f"{last.text}\n{line}", last.printed, measured)
        elif line.startswith("$ "):
            found.append(Command(line[2:], [], measured))
        else:
            found[-1].printed.append(line)
            continue
        more = line.endswith("\\")
    return found


def rewritten(page: str, outputs: list[list[list[str]]]) -> str:
    """Return a page with what its commands printed, block by block."""
    runs = iter(outputs)

    def block(match: re.Match[str]) -> str:
        shown: list[str] = []
        for command, lines in zip(_commands(match[2], bool(match[1])), next(runs), strict=True):
            shown += [f"$ {command.text}", *command.cut(lines)]
        return f"```console{match[1] or ''}\n" + "\n".join(shown) + "\n```"

    return _BLOCK.sub(block, page)


class Shell:
    """One bash in a folder of its own, with nidmap of this environment first on PATH."""

    def __init__(self, folder: Path) -> None:
        for path in sorted((ROOT / "examples").iterdir()):
            if path.is_file():
                shutil.copy(path, folder / path.name)
        kept = {name: os.environ[name] for name in ("USER", "LANG", "TERM") if name in os.environ}
        bin_folder = Path(sys.executable).parent
        env = {
            **kept,
            "PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(folder),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.folder = folder

    def run(self, text: str) -> list[str]:
        """Run one command and return the lines that it prints, those of stderr among them."""
        assert self._bash.stdin is not None
        self._bash.stdin.write(f"{{ {text}\n}} </dev/null\nnidmap_code=$?\n")
        self._bash.stdin.write(f"printf '{_MARK}\\n'; (exit $nidmap_code)\n")
        self._bash.stdin.flush()
        watch = threading.Timer(PATIENCE, self._bash.kill)
        watch.start()
        try:
            return self._answer(text)
        finally:
            watch.cancel()

    def _answer(self, text: str) -> list[str]:
        """Return what is printed until the mark behind the command."""
        assert self._bash.stdout is not None
        lines: list[str] = []
        for line in self._bash.stdout:
            before, mark, _ = line.partition(_MARK)
            if before.rstrip("\n"):
                lines.append(self._steady(before.rstrip()))
            elif not mark:
                lines.append("")
            if mark:
                return lines
        raise AssertionError(f"the shell ended in: {text}")

    def _steady(self, line: str) -> str:
        """Return a line without what is drawn anew in each run: folders, names of processes."""
        line = line.replace(str(self.folder), "~")
        line = re.sub(r"\bnidmap(-\d+)?-[a-z0-9_]{8}\b(?=/)", "nidmap-abcd1234", line)
        return re.sub(r"\brun-\d+\b", "run-1234", line)

    def close(self) -> None:
        """End the shell."""
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        self._bash.wait(60)
        assert self._bash.stdout is not None
        self._bash.stdout.close()


def run_page(page: str, folder: Path) -> list[list[list[str]]]:
    """Run a page's commands and return what each printed, block by block."""
    shell = Shell(folder)
    try:
        return [[shell.run(command.text) for command in block] for block in commands(page)]
    finally:
        shell.close()
