# SPDX-License-Identifier: Apache-2.0
"""The command line's frame: commands are found by name and loaded on demand.

Each room brings its own commands; the front door names them in
`nidmap.placement.hooks`, so that ``nidmap plan`` never pays for the web page or for MPI.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from typing import Any, NoReturn

import click

from nidmap.placement import __version__
from nidmap.placement.commands.common import LazyGroup
from nidmap.placement.commands.pages import page_of
from nidmap.placement.errors import NidmapError, UsageError, printable
from nidmap.placement.hooks import COMMANDS
from nidmap.placement.support.writing import silence_stdout


class _Commands(LazyGroup):
    """The command group with the commands of all rooms."""

    lazy = COMMANDS


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"Guide: {page_of('')}",
)
@click.version_option(__version__, prog_name="nidmap")
def cli() -> None:
    """Which nodes should a job sit on, in which order, and what does that buy?

    \b
    nidmap plan -m shaheen2 -N 216 --strategy blades --format sbatch
    nidmap order -m shaheen2 --nodes nid[00012-00015] --ppn 32 --pattern fft:8x16
    nidmap run --pattern fft:8x16 -- srun -n 128 ./app
    """


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with nidmap's exit codes.

    0 success; 1 the answer is no; 2 usage; 3 bad input; 4 launcher or Slurm;
    5 the output cannot be written; 130 on Ctrl-C.
    """
    code = run(argv)
    gc.freeze()  # exempts long-lived objects: saves a tenth of a short command
    sys.exit(code)


def run(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    if sys.stdout is None or sys.stderr is None:
        _stand_in_for_closed()
    words = sys.argv[1:] if argv is None else argv
    if any("\0" in word for word in words):
        return fail("an argument contains a NUL byte", 2)
    try:
        code: Any = cli.main(args=words, prog_name="nidmap", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # click leaves by SystemExit when a pipe breaks
        silence_stdout()
        return 141  # silently, like a tool killed by SIGPIPE
    except OSError as error:
        silence_stdout()
        what = f"cannot read or write {error.filename}" if error.filename else "cannot write"
        return fail(f"{what}: {error.strerror or error}", 5)
    except (Exception, KeyboardInterrupt) as error:
        return _explain_error(error)
    return code if isinstance(code, int) else 0


def _stand_in_for_closed() -> None:
    """Open a substitute where standard output or standard error is closed."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # keeps files of ours from getting a standard stream's number
    os.close(handle)
    if sys.stdout is None:
        sys.stdout = _Closed()  # writing there must fail, not seem to succeed
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end


def _explain_error(error: BaseException) -> int:
    """Print what an error means on one line and return its exit code."""
    if isinstance(error, NidmapError):
        return fail(f"{error} (see {error.page})" if error.page else str(error), error.exit_code)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "nidmap"
        return fail(f"{error.format_message()} (see {command} --help)", 2)
    if isinstance(error, click.ClickException):
        return fail(error.format_message(), error.exit_code)
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return fail("interrupted", 130)
    if isinstance(error, MemoryError):
        return fail("out of memory; a smaller machine or pattern is needed", 3)
    if isinstance(error, RecursionError):
        return fail("the input is nested too deeply", 3)
    if isinstance(error, ModuleNotFoundError) and (needed := missing(error.name or "")):
        return fail(str(needed), needed.exit_code)
    if isinstance(error, ImportError):
        return fail(f"cannot be loaded: {error}; reinstall nidmap", 5)
    if os.environ.get("NIDMAP_DEBUG"):
        raise error
    what = f"{type(error).__name__}: {error}"
    return fail(f"internal error, {what}; this is a bug: NIDMAP_DEBUG=1 shows where", 70)


def fail(message: str, code: int) -> int:
    """Write one line to stderr and return `code`."""
    one_line = printable(" ".join(message.split("\n")), limit=2000)
    try:
        sys.stderr.write(f"nidmap: {one_line}\n")
        sys.stderr.flush()
    except OSError:
        pass  # stderr itself is closed: the exit code is all that is left to say
    return code


class _Closed(io.TextIOBase):
    """Stand-in for a standard output that was closed before the start."""

    def write(self, text: str, /) -> int:
        """Fail as writing to the closed descriptor would."""
        raise OSError(errno.EBADF, "standard output is closed")


#: Package -> the extra that installs it.
EXTRAS = {
    "ducc0": "fft",
    "jinja2": "web",
    "markupsafe": "web",
    "quart": "web",
    "prometheus_client": "web",
    "quickjs": "web",
    "resvg_py": "web",
    "llvmlite": "fast",
    "matplotlib": "plot",
    "mpi4py": "mpi",
    "networkx": "graphs",
    "numba": "fast",
    "pandas": "tables",
    "scipy": "fft",
    "uvicorn": "web",
    "werkzeug": "web",
}

#: Packages whose users know them by another name than their module's.
NAMES = {
    "jinja2": "Jinja2",
    "markupsafe": "MarkupSafe",
    "prometheus_client": "prometheus-client",
    "quart": "Quart",
    "quickjs": "quickjs-ng",
    "resvg_py": "resvg-py",
    "werkzeug": "Werkzeug",
}


def missing(module: str, what: str = "this") -> UsageError | None:
    """Return the error to raise where a module of an optional extra is not installed.

    `module`: the module that could not be imported. `what`: what needs it, for the message. None
    where no extra brings it: then the install is broken.
    """
    package = module.partition(".")[0]
    if package not in EXTRAS:
        return None
    name = NAMES.get(package, package)
    hint = f"pip install 'nidmap[{EXTRAS[package]}]'"
    return UsageError(f"{what} needs {name}, which is not installed", hint)
