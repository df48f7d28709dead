# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options, and their shell completion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

import click

from nidmap.placement.commands.pages import name_page
from nidmap.placement.hooks import SERVICES, load

if TYPE_CHECKING:
    from collections.abc import Callable

    Param = click.ParamType[Any]
else:
    Param = click.ParamType  # not generic in older versions of click

#: What a shell can complete, and where its names come from.
_NAMES = {
    "machine": "nidmap.placement.sites:site_names",
    "planner": "nidmap.placement.planners:names",
}


class LazyGroup(click.Group):
    """A click group that imports some of its commands only when they are needed."""

    # Command -> its location, and its one line of help
    lazy: ClassVar[dict[str, tuple[str, str]]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names: our own sorted, then the others in their order."""
        return [*super().list_commands(ctx), *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, importing it if necessary."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = load(self.lazy[cmd_name][0])
        return name_page(command, " ".join([*ctx.command_path.split()[1:], cmd_name]))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        rows = [
            (name, self.commands[name].get_short_help_str(60)) for name in sorted(self.commands)
        ]
        with formatter.section("Commands"):
            formatter.write_dl([*rows, *((name, line) for name, (_, line) in self.lazy.items())])


def among(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a shell completion for the names of a kind.

    `kind`: ``machine``, ``planner``, ``order``, ``pattern`` or ``launcher``.
    """

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        names: list[str] = load(_NAMES.get(kind) or SERVICES[f"names of {kind}"])()
        return [name for name in names if name.startswith(begun)]

    return complete


#: ``--quiet``, which suppresses remarks.
quiet_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: value and context.meta.update(quiet=True),
    help="Print only errors on stderr.",
)


#: ``-m/--machine``; without it, the machine is determined by `machine_specs`.
machine_option = click.option(
    "-m",
    "--machine",
    "specs",
    multiple=True,
    metavar="SPEC",
    shell_complete=among("machine"),
    help="Site, dump file or e.g. torus:8x8x8,process=2; may repeat. Default: this machine.",
)


#: ``--json`` of a command that prints text or JSON; either goes to a file by ``> FILE``.
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class AdvancedOption(click.Option):
    """An option for rare cases, shown by ``--help-all`` but not by ``--help``."""


def advanced(*flags: str, **attributes: Any) -> Callable[..., Any]:
    """Return `click.option` for an option of an `AdvancedCommand` shown by ``--help-all`` only."""
    return click.option(*flags, cls=AdvancedOption, **attributes)


class AdvancedCommand(click.Command):
    """A command whose ``--help`` fits on one screen; ``--help-all`` shows the rest.

    The rest are the options of `advanced`, and the text after a form feed.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, including ``--help-all``."""
        show = click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
            callback=self._show_all, help="Show advanced options too, and exit.",
        )  # fmt: skip
        return [*super().get_params(ctx), show]

    def _show_all(self, ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta["help-all"] = True
            click.echo(self.get_help(ctx), color=ctx.color)
            ctx.exit()

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, in full for ``--help-all``."""
        short = self.help
        if ctx.meta.get("help-all"):
            self.help = (short or "").replace("\f\n", "\n")
        super().format_help_text(ctx, formatter)
        self.help = short

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; for ``--help-all``, the advanced ones after the others."""
        rows = [
            (isinstance(p, AdvancedOption), p.get_help_record(ctx)) for p in self.get_params(ctx)
        ]
        for title, rare in (("Options", False), ("Advanced", True)):
            records = [record for is_rare, record in rows if record and is_rare == rare]
            if records and (not rare or ctx.meta.get("help-all")):
                with formatter.section(title):
                    formatter.write_dl(records)


#: Option of several commands for jobs on nodes of one kind.
kind_option = advanced(
    "--kind",
    default="",
    metavar="K|any",
    help="Take nodes of this kind, e.g. gpus=8; any: mix kinds.",
)


def slurm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select among Slurm's nodes."""
    for option, flags, text in (
        (advanced, ("--reservation",), "Only nodes of this Slurm reservation (--from idle)."),
        (advanced, ("--constraint", "-C"), "Only nodes with these Slurm features, e.g. gpu&a100."),
        (click.option, ("--partition", "-p"), "Only nodes of this Slurm partition (--from idle)."),
    ):
        command = option(*flags, help=text)(command)
    return command


_SIZE = re.compile(r"(-?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)\s?(?:([kKMGT])(i?)B?|B)?", re.ASCII)


class ByteCount(Param):
    """A number of bytes: ``8``, ``64kB`` (10^3), ``64KiB`` (2^10), ``1.5MiB`` (2^20).

    `whole`: True refuses what is not a whole number of bytes, and returns int.
    """

    name = "bytes"

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the bytes as a float or int."""
        match = _SIZE.fullmatch(str(value))
        if match is None:
            return self.fail(f"{value!r} is not a size; use 8, 64kB or 4MiB", param, ctx)
        power = " kMGT".index((match[2] or " ").replace("K", "k"))
        size = float(match[1]) * (1024 if match[3] else 1000) ** power
        if self.whole and not size.is_integer():
            return self.fail(f"{value!r} is not a whole number of bytes", param, ctx)
        return int(size) if self.whole else size


#: The options, each as a `Job` calls it: kind of value, and both
#: columns of the help.
SENDING: dict[str, tuple[Any, str, str]] = {
    "bytes": (ByteCount(), "B",
        "Bytes per message (64KiB); a factor for graph:, matrix:, training:."),
    "algorithm": (str, "A",
        "Algorithm of collectives: library (default: the MPI's choice), pairwise, bruck …"),
    "background": (str, "FILE|slurm",
        "Other jobs: one node list per line, or slurm: its running jobs."),
}  # fmt: skip


def sending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a job sends; each defaults to None."""
    for word, (kind, metavar, text) in reversed(SENDING.items()):
        declare = click.option if word == "bytes" else advanced
        command = declare(f"--{word}", type=kind, metavar=metavar, help=text)(command)
    return command
