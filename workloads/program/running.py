"""The launches of a comparison, one after another, and what is kept of each."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placement.commands.common import say
from placement.errors import NidmapError, ParseError, printable
from workloads.ab.analysis import analyse
from workloads.launched import Launches
from workloads.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.program.arms import ProgramArm, Turn
    from workloads.program.timer import Timer
    from workloads.results import Journal

__all__ = ["GRACE", "Measurement"]

#: Seconds in which a launch that is asked to end must have done so.
GRACE = 10.0

#: What a launch prints: standard output, and what it says besides.
_STREAMS = (".out", ".err")


@dataclass(slots=True)
class Measurement:
    """The launches of a comparison.

    Attributes
    ----------
    arms : list of ProgramArm
    turns : list of Turn
    timer : Timer
    journal : Journal
        Of the samples.
    folder : str
        Where the program's output goes.
    budget : float or None
        Seconds after which no launch is begun that will not be over by then.
    looks : sequence of int
        After how many blocks it may be decided; one: all of them.
    level : float
        See `workloads.ab.analysis.analyse`.
    show : bool
        Whether the program's output is copied to stderr.
    retries : int
        How often in a row a launch that fails is begun anew.
    ended : str
        ``complete``, ``decided``, ``budget``, ``interrupted`` or ``failed``.
    exit_code : int
        The program's own where it failed, 130 where it was interrupted.
    cut_short : str
        What kept it from its end, '' for nothing.
    """

    arms: list[ProgramArm]
    turns: list[Turn]
    timer: Timer
    journal: Journal
    folder: str
    budget: float | None
    looks: Sequence[int]
    level: float
    show: bool
    retries: int
    ended: str = "complete"
    exit_code: int = 0
    cut_short: str = ""

    def run(self, env: Mapping[str, str]) -> None:
        """Launch until it is decided or over; samples are kept whatever comes in.

        Raises
        ------
        NidmapError
            A launcher that cannot be started, a program that states no figure.
        """
        title = f"ab {self.journal.header['workload']}"
        with Launches(GRACE) as children, Progress(title, len(self.turns)) as progress:
            try:
                self._run_turns(children, env, progress)
            except NidmapError:
                self.ended = "failed"
                raise
            finally:
                self.journal.close(self.ended)
        if self.ended in ("budget", "interrupted"):
            self.cut_short = f"ended early ({self.ended})"
        if self.cut_short:
            count = len(self.journal.rows)
            say(f"nidmap: {self.cut_short}; {count} finished samples are kept")
        if retried := self.journal.header["retried"]:
            often = ", ".join(f"{count} of {arm}" for arm, count in retried.items())
            say(f"nidmap: launches that failed and were begun anew: {often}")

    def _run_turns(self, children: Launches, env: Mapping[str, str], progress: Progress) -> None:
        """Launch one arm after another."""
        began, longest = time.monotonic(), 0.0
        for done, turn in enumerate(self.turns, 1):
            spent = time.monotonic() - began
            if done > 1 and self.budget is not None and spent + longest > self.budget:
                self.ended = "budget"
                return
            seconds = self._launch(children, env, turn)
            if self.ended != "complete":
                return
            longest = max(longest, seconds)
            progress.at(done)
            if turn.last and self._is_decided(turn):
                self.ended = "decided"
                return

    def _launch(self, children: Launches, env: Mapping[str, str], turn: Turn) -> float:
        """Launch an arm, anew where that fails, and return how many seconds the last one took."""
        for attempt in range(self.retries + 1):
            if children.stopped:
                self.ended, self.exit_code = "interrupted", 130
                return 0.0
            paths, before = self.output_files(turn, attempt), self.timer.written()
            code, seconds = self._run_program(children, env, turn, paths)
            self._show_output(paths)
            if children.stopped:
                self.ended, self.exit_code = "interrupted", 130
                return seconds
            last = attempt == self.retries
            if not code and self._read_figure(turn, seconds, paths, before, last):
                return seconds
            if last:
                self._fail(code, turn, paths)
            else:
                self._count_retry(turn)
        return seconds

    def _run_program(
        self, children: Launches, env: Mapping[str, str], turn: Turn, paths: Sequence[str]
    ) -> tuple[int, float]:
        """Launch an arm once, and return its exit code and its seconds."""
        launch = self.arms[turn.arm].launch
        with open(paths[0], "xb") as out, open(paths[1], "xb") as err:
            began = time.perf_counter()
            code, _ = children.run(launch.argv, {**env, **launch.env}, stdout=out, stderr=err)
            return code, time.perf_counter() - began

    def output_files(self, turn: Turn, attempt: int = 0) -> list[str]:
        """Return the files of a launch's standard output and standard error."""
        name = turn.file_name(self.arms[turn.arm].arm.name.replace(" ", "-"))
        again = f"-retry-{attempt}" if attempt else ""
        return [os.path.join(self.folder, f"{name}{again}{suffix}") for suffix in _STREAMS]

    def _read_figure(
        self,
        turn: Turn,
        seconds: float,
        paths: Sequence[str],
        before: tuple[str, int],
        must: bool,
    ) -> bool:
        """Keep a launch's figure, and tell whether it has one.

        Raises
        ------
        ParseError
            It has none, and must have one, or none has had one yet: the expression is at fault.
        """
        try:
            figure = self.timer.read(paths, before)
        except ParseError:
            if must or not self.journal.rows:
                raise
            return False
        self._keep(turn, seconds, figure)
        return True

    def _count_retry(self, turn: Turn) -> None:
        """Note in the samples' header that a launch of this arm failed and is begun anew."""
        arm, so_far = self.arms[turn.arm].arm.name, self.journal.header["retried"]
        self.journal.describe({"retried": {**so_far, arm: so_far.get(arm, 0) + 1}})

    def _keep(self, turn: Turn, seconds: float, figure: float | None) -> None:
        cost = seconds if figure is None else self.timer.cost(figure)
        self.journal.add([{
            "launch": self.journal.header["launch"], "block": turn.block, "visit": turn.visit,
            "arm": self.arms[turn.arm].arm.name, "repetition": 0, "warmup": int(turn.warmup),
            "phase": "total", "min": cost, "mean": cost, "max": cost,
            "figure": seconds if figure is None else figure, "wall": seconds,
        }])  # fmt: skip

    def _fail(self, code: int, turn: Turn, paths: Sequence[str]) -> None:
        """Note which launch failed; nothing is launched after it."""
        self.ended, self.exit_code = "failed", code if code > 0 else 128 - code
        how = f"code {code}" if code > 0 else f"signal {-code}"
        arm, said = self.arms[turn.arm].arm.name, " and ".join(map(printable, paths))
        often = f" {self.retries + 1} times in a row" if self.retries else ""
        place = f"as {arm} in block {turn.block}"
        self.cut_short = f"the program failed{often} ({how}) {place}, see {said}"

    def _show_output(self, paths: Sequence[str]) -> None:
        """Copy what a launch printed to stderr: stdout carries the result only."""
        if self.show:
            for path in paths:
                with open(path, "rb") as stream:
                    for line in stream:
                        sys.stderr.write(line.decode("utf-8", "replace"))
            sys.stderr.flush()

    def _is_decided(self, turn: Turn) -> bool:
        """Tell whether, at one of the looks before the end, every arm differs from the default."""
        counted = turn.block + 1 - self.journal.header["warmup"]
        if turn.warmup or counted not in self.looks[:-1]:
            return False
        found: dict[str, Any] = analyse(self.journal.header, self.journal.rows, level=self.level)
        own = [entry for entry in found["comparisons"] if not entry["control"]]
        return bool(found["trusted"]) and all(entry["shown"] for entry in own)
