# SPDX-License-Identifier: Apache-2.0
"""The command line stays small: options are counted, and each help fits a screen."""

import click
import pytest

import nidmap  # noqa: F401  # the front door names the commands
from nidmap.placement.commands import cli

#: Options in all, on one command, and lines of a help, two of which name its page of the guide.
MOST, MOST_OF_ONE, LINES = 320, 26, 52

#: What a job is planned, launched and measured with has three examples.
MAIN = ("plan", "order", "score", "predict", "compare", "run", "record", "ab")


def contexts(context):
    """Yield a command's context and those of all below it that are listed."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if not command.hidden:
                yield from contexts(click.Context(command, info_name=name, parent=context))


COMMANDS = {
    context.command_path: context
    for context in contexts(click.Context(cli, info_name="nidmap", **cli.context_settings))
}


def options(context):
    return [one for one in context.command.params if isinstance(one, click.Option)]


def test_there_are_no_more_options_than_people_can_choose_from():
    assert sum(len(options(context)) for context in COMMANDS.values()) <= MOST


@pytest.mark.parametrize("path", COMMANDS)
def test_a_help_fits_a_screen_and_shows_how_the_command_is_used(path):
    context = COMMANDS[path]
    shown = context.command.get_help(context)
    assert len(options(context)) <= MOST_OF_ONE
    assert shown.count("\n") < LINES
    examples = [line for line in shown.split("\n") if line.strip().startswith(("nidmap ", "srun "))]
    of_programs = path.startswith("nidmap bench")
    assert len(examples) >= (3 if of_programs or path.removeprefix("nidmap ") in MAIN else 1)


def test_what_is_rare_stands_in_the_help_of_all(capsys):
    for words in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            cli.main(["plan", words])
    short, whole = capsys.readouterr().out.partition("Show advanced options too, and exit.")[::2]
    assert "--include" not in short
    assert "Advanced:" in whole
    assert "--include" in whole
    assert "With --segment S" in whole
