# SPDX-License-Identifier: Apache-2.0
"""Runs a program with the library between it and its MPI, and saves the recorded messages."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from nidmap.placement.errors import LaunchError, NidmapError, ParseError, UsageError, printable
from nidmap.placement.support.child import start_child
from nidmap.placement.support.quantities import counted
from nidmap.placement.ui import say
from nidmap.rankmap.launch.process import job_environment
from nidmap.rankmap.preload import libraries_for, preload
from nidmap.rankmap.recording.file import save_recording
from nidmap.rankmap.recording.raw import Window, read_raw

#: ``--window pcontrol``: count only between the program's own MPI_Pcontrol(1) and (0).
PCONTROL = "pcontrol"

#: Signals that somebody sends to a job through its launcher.
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")

_WINDOW = re.compile(r"(\d+(?:\.\d*)?)(%|s)-(\d+(?:\.\d*)?)(%|s)")


def parse_window(text: str) -> Window | None:
    """Parse a time window; None if the program controls recording itself, or for all."""
    if text in ("", PCONTROL):
        return None
    match = _WINDOW.fullmatch(text)
    if not match or match[2] != match[4]:
        form = "30%-70%, 10s-60s or pcontrol"
        raise UsageError(f"--window '{printable(text, 40)}' is not understood", f"write {form}")
    shares = match[2] == "%"
    low, high = (float(match[k]) / (100 if shares else 1) for k in (1, 3))
    if not low < high or (shares and high > 1):
        raise UsageError(f"--window {text} is empty", "write 30%-70% or 10s-60s")
    return Window(low, high, shares)


def run_recorded(command: Sequence[str], output: str, window: str, mpicc: str, strict: bool) -> int:
    """Run a command, write the recorded messages, and return its exit code.

    A failure on our side is reported in one line and costs the recording,
    not the run; what the ranks counted is kept until it is up in `output`.

    `command`: launcher, options, program. `output`: the file of the recording: the ranks' own
    counts are next to it until it is written. `mpicc`: the MPI compiler; '' looks for it.
    `strict`: do not run what cannot be recorded.
    """
    part = parse_window(window)
    env = job_environment(os.environ)
    raw = os.path.abspath(f"{output}.counts-{os.getpid()}")
    argv = list(command)
    counting = {"": "", PCONTROL: PCONTROL}.get(window, "time")
    try:
        libraries = libraries_for(command, env, mpicc)
        variables = {"NIDMAP_RECORD": raw, "NIDMAP_RECORD_WINDOW": counting}
        argv, more = preload(command, libraries, variables, env)
        env |= more
    except (NidmapError, OSError) as error:
        if strict:
            raise LaunchError(str(error)) from None
        say(f"nidmap: {error}; the program runs unrecorded")
        return _run_command(argv, env)
    code = _run_command(argv, env)
    if not _counts_at(raw):
        fault = f"no rank of '{printable(' '.join(command), 80)}' left any counts: it did not call"
        why = "MPI_Init, was started by the launcher of another MPI, or was killed"
        say(f"nidmap: {fault} {why} (see docs/howto/wrong-node.md)")
        return code
    try:
        merge_counts(raw, output, shlex.join(command), window)
    except (NidmapError, OSError, MemoryError) as error:
        again = ["nidmap", "record", "--merge", raw, "-o", output]
        again += ["--window", window] if part else []
        why = printable(str(error), 400) or "out of memory"
        say(f"nidmap: {why}; the counts are kept: {shlex.join(again)}")
    return code


def merge_counts(raw: str, output: str, program: str, window: str) -> None:
    """Merge the counts that ranks left into a recording, write it, and remove them.

    `raw`: how the names of their files begin, each of which ends in a host's. `output`: the
    recording's file. `program`, `window`: what was recorded, and which part; see `parse_window`.
    """
    paths = _counts_at(raw)
    if not paths:
        raise ParseError(raw, 0, "no rank left any counts")
    hosts = tuple(path.removeprefix(f"{os.path.abspath(raw)}.") for path in paths)
    read = dataclasses.replace(
        read_raw(paths, program, parse_window(window)),
        window=window, hosts=hosts, machine=os.environ.get("NIDMAP_MACHINE", ""),
    )  # fmt: skip
    save_recording(read, output)
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
    say(f"nidmap: {counted(read.ranks, 'rank')} recorded in {output}: nidmap record show {output}")
    for note in read.notes if read.ranks == 1 else ():
        say(f"nidmap: {note}")


def _counts_at(raw: str) -> list[str]:
    """Return count files with this prefix, removing empty ones left by a full disk."""
    folder, name = os.path.split(os.path.abspath(raw))
    files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, file) for file in files if file.startswith(f"{name}.")]
    for path in [path for path in paths if not os.path.getsize(path)]:
        os.unlink(path)
        paths.remove(path)
    return paths


def check_reorder(command: Sequence[str], mpicc: str) -> int:
    """Run a command, reordering every communicator possible; return 1 if ranks are mixed up.

    The first rank that is seen to use one communicator's ranks in another ends the run.

    1 where that was seen, else the command's own exit code.
    """
    env = job_environment(os.environ)
    libraries = libraries_for(command, env, mpicc)
    with tempfile.TemporaryDirectory(prefix=".nidmap-", dir=os.curdir) as folder:
        report = Path(folder).absolute() / "said"
        argv, more = preload(command, libraries, {"NIDMAP_CHECK_REORDER": str(report)}, env)
        code = _run_command(argv, {**env, **more})
        lines = report.read_text("utf-8", "replace").splitlines() if report.exists() else []
    mixed = [line.removeprefix("mixed ") for line in lines if line.startswith("mixed ")]
    for line in mixed[:1]:
        say(f"nidmap: {line}: the program mixes ranks of two communicators")
    if mixed:
        return 1
    communicators = counted(sum(line.startswith("made ") for line in lines), "communicator")
    say(f"nidmap: reordered {communicators}; the program mixed no ranks of two communicators")
    if code:
        say(
            f"nidmap: the program ended with code {code}; check whether it also does without nidmap"
        )
    return code


def _run_command(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code as a shell reports it.

    Its output and its terminal are its own. Ctrl-C reaches it from the
    terminal; other signals that are sent to us are passed on.
    """
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    try:
        child = start_child(argv, env=dict(env), preexec_fn=_reset_signals)
        for name in _PASSED_ON:
            number = getattr(signal, name)
            before[number] = signal.signal(number, lambda got, _: child.send_signal(got))
        code = child.wait()
    finally:
        for number, handler in before.items():
            if handler is not None:  # a library's own, which Python cannot put back
                signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _reset_signals() -> None:
    """Restore the signal handlers that the program would have without us."""
    for changed in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(changed, signal.SIG_DFL)
