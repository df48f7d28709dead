"""The launches of a comparison, one after another, and what is kept of each."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Measurement:
    """The launches of a comparison.

    Attributes
    ----------
    arms : list of ProgramArm
    turns : list of Turn
    timer : Timer
    journal : Journal
        Of the samples; its header has the ``looks`` (after how many blocks it
        may be decided) and the ``budget`` (seconds after which no launch is
        begun that will not be over by then, or None).
    folder : str
        Where the program's output goes.
    env : mapping of str to str
        The environment of all launches.
    options : mapping
        Those of the command, of which count ``level``, ``show`` (whether the
        program's output is copied to stderr) and ``retries`` (how often in a
        row a launch that fails is begun anew).
    launches : Launches
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
    env: Mapping[str, str]
    options: Mapping[str, Any]
    launches: Launches = field(default_factory=lambda: Launches(GRACE))
    ended: str = "complete"
    exit_code: int = 0
    cut_short: str = ""

    def run(self) -> None:
        """Launch until it is decided or over; samples are kept whatever comes in.

        Raises
        ------
        NidmapError
            A launcher that cannot be started, a program that states no figure.
        """
        title = f"ab {self.journal.header['workload']}"
        with self.launches, Progress(title, len(self.turns)) as progress:
            try:
                self._run_turns(progress)
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

    def _run_turns(self, progress: Progress) -> None:
        """Launch one arm after another."""
        began, longest, budget = time.monotonic(), 0.0, self.journal.header["budget"]
        for done, turn in enumerate(self.turns, 1):
            spent = time.monotonic() - began
            if done > 1 and budget is not None and spent + longest > budget:
                self.ended = "budget"
                return
            seconds = self._launch(turn)
            if self.ended != "complete":
                return
            longest = max(longest, seconds)
            progress.at(done)
            if turn.last and self._is_decided(turn):
                self.ended = "decided"
                return

    def _launch(self, turn: Turn) -> float:
        """Launch an arm, anew where that fails, and return how many seconds the last one took."""
        name, seconds = self.arms[turn.arm].arm.name, 0.0
        for left in range(self.options["retries"], -1, -1):
            paths = turn.output_files(self.folder, name, self.options["retries"] - left)
            before = self.timer.written()
            if not self.launches.stopped:
                code, seconds = self._run_program(turn, paths)
            if self.launches.stopped:
                self.ended, self.exit_code = "interrupted", 130
                return seconds
            if not code and self._read_figure(turn, seconds, paths, before, must=not left):
                return seconds
            if left:
                so_far = self.journal.header["retried"]
                self.journal.describe({"retried": {**so_far, name: so_far.get(name, 0) + 1}})
        self._fail(code, turn, paths)
        return seconds

    def _run_program(self, turn: Turn, paths: Sequence[str]) -> tuple[int, float]:
        """Launch an arm once, and return its exit code and its seconds."""
        launch = self.arms[turn.arm].launch
        with open(paths[0], "xb") as out, open(paths[1], "xb") as err:
            began = time.perf_counter()
            env = {**self.env, **launch.env}
            code, _ = self.launches.run(launch.argv, env, stdout=out, stderr=err)
            seconds = time.perf_counter() - began
        for path in paths if self.options["show"] else ():  # stdout carries the result only
            with open(path, "rb") as stream:
                for line in stream:
                    sys.stderr.write(line.decode("utf-8", "replace"))
        sys.stderr.flush()
        return code, seconds

    def _read_figure(
        self, turn: Turn, seconds: float, paths: Sequence[str], before: tuple[str, int], must: bool
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
        cost = seconds if figure is None else self.timer.cost(figure)
        self.journal.add([{
            "launch": self.journal.header["launch"], "block": turn.block, "visit": turn.visit,
            "arm": self.arms[turn.arm].arm.name, "repetition": 0, "warmup": int(turn.warmup),
            "phase": "total", "min": cost, "mean": cost, "max": cost,
            "figure": seconds if figure is None else figure, "wall": seconds,
        }])  # fmt: skip
        return True

    def _fail(self, code: int, turn: Turn, paths: Sequence[str]) -> None:
        """Note which launch failed; nothing is launched after it."""
        self.ended, self.exit_code = "failed", code if code > 0 else 128 - code
        how = f"code {code}" if code > 0 else f"signal {-code}"
        arm, said = self.arms[turn.arm].arm.name, " and ".join(map(printable, paths))
        often = f" {self.options['retries'] + 1} times in a row" if self.options["retries"] else ""
        place = f"as {arm} in block {turn.block}"
        self.cut_short = f"the program failed{often} ({how}) {place}, see {said}"

    def _is_decided(self, turn: Turn) -> bool:
        """Tell whether, at one of the looks before the end, every arm differs from the default."""
        header = self.journal.header
        counted = turn.block + 1 - header["warmup"]
        if turn.warmup or counted not in header["looks"][:-1]:
            return False
        found: dict[str, Any] = analyse(header, self.journal.rows, level=self.options["level"])
        own = [entry for entry in found["comparisons"] if not entry["control"]]
        return bool(found["trusted"]) and all(entry["shown"] for entry in own)
