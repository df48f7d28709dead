# SPDX-License-Identifier: Apache-2.0
"""What a wheel has beside the code: man pages, and the recorder where it was built for one.

Man pages are made from the commands' own help (``share/man/man1``). ``make wheel`` names a folder
of built libraries (``build_recorders.py``) in ``NIDMAP_RECORDERS``; its name is the architecture.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import click
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from collections.abc import Iterator


class WheelParts(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Adds a page for each command, and the recorder's libraries, to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages, and name all files to the wheel that is being built."""
        if version == "editable":
            return
        recorders = os.environ.get("NIDMAP_RECORDERS")
        if recorders:
            build_data["force_include"][recorders] = "nidmap/rankmap/preload/recorders"
            build_data["tag"] = f"py3-none-manylinux2014_{os.path.basename(recorders)}"
            build_data["pure_python"] = False
        self.folder = Path(mkdtemp(prefix="nidmap-man-"))
        for path in write_pages(Path(self.root), self.folder):
            build_data["shared_data"][str(path)] = f"share/man/man1/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the pages away that stand in the wheel now."""
        for path in getattr(self, "folder", Path("/nonexistent")).glob("*.1"):
            path.unlink()
        if version != "editable":
            self.folder.rmdir()


def write_pages(root: Path, folder: Path) -> list[Path]:
    """Write a man page for each command of the checkout at `root` and return the files."""
    sys.path.insert(0, str(root))
    try:
        import nidmap  # noqa: F401  # the front door names the commands
        from nidmap.placement import __version__
        from nidmap.placement.commands import cli

        written = []
        for context in commands(click.Context(cli, info_name="nidmap")):
            path = folder / f"{context.command_path.replace(' ', '-')}.1"
            path.write_text(page(context, __version__), encoding="utf-8")
            written.append(path)
    finally:
        sys.path.remove(str(root))
    return written


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command and of all below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            found = context.command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from commands(click.Context(found, info_name=name, parent=context))


def page(context: click.Context, version: str) -> str:
    """Return one man page: what the command's ``--help`` says, in roff."""
    command, path = context.command, context.command_path
    name = path.replace(" ", "-")
    short = command.get_short_help_str(100).rstrip(".")
    pieces = " ".join(command.collect_usage_pieces(context))
    lines = [f'.TH "{name.upper()}" 1 "" "nidmap {version}" "nidmap"']
    lines += [".SH NAME", rf"{escaped(name)} \- {escaped(short)}"]
    lines += [".SH SYNOPSIS", rf"\fB{escaped(path)}\fR {escaped(pieces)}", ".SH DESCRIPTION"]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            lines += [".PP", ".nf", escaped(paragraph[2:]), ".fi"]
        else:
            lines += [".PP", escaped(paragraph)]
    lines.append(".SH OPTIONS")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            lines += [".TP", rf"\fB{escaped(record[0])}\fR", escaped(record[1])]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None and not found.hidden:
                page_name = rf"\fB{escaped(f'{name}-{each}')}\fR(1)"
                lines += [".TP", page_name, escaped(found.get_short_help_str(100))]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    r"""Return text as roff reads it literally.

    Examples
    --------
    >>> print(escaped("-m M\n.dot"))
    \-m M
    \&.dot
    """
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    return "\n".join(rf"\&{line}" if line[:1] in (".", "'") else line for line in text.split("\n"))
