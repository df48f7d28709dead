"""``nidmap run`` behind its options: plan aside, check where asked, become the launcher.

With ``--inside`` nothing is planned: the running program is given its order, by any launcher.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_from, named_specs, say, to_json, write_output
from placement.errors import LaunchError, NidmapError, UsageError, error_text, printable
from placement.support.lazy import lazy
from rankmap.launch import Launch
from rankmap.launch.launch_folder import discard_launch, remove_at_end
from rankmap.launch.planning import last_result
from rankmap.launch.process import become, job_environment
from rankmap.launch.queries import plain_host, query_rank_nodes
from rankmap.progress import step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from placement import load
    from placement.lists import pasted
    from placement.machine import Machine
    from rankmap.commands.model import JobArguments
    from rankmap.launch import allocation as allocations
    from rankmap.launch import expectation as expectations
    from rankmap.launch import job as launch_job
    from rankmap.launch.expectation import Expectation
    from rankmap.launch.job import JobLaunch, Prepared
    from rankmap.placement import Placement
    from rankmap.preload import build
    from rankmap.runtime import answer
    from rankmap.runtime.answer import Answerer
else:  # a launch has to be quick: numpy is loaded by the child that plans
    answer, build = lazy("rankmap.runtime.answer"), lazy("rankmap.preload.build")
    load, pasted = lazy("placement.load"), lazy("placement.lists.pasted")
    allocations = lazy("rankmap.launch.allocation")
    expectations, launch_job = lazy("rankmap.launch.expectation"), lazy("rankmap.launch.job")

__all__ = ["REFUSED", "RunCommand"]

SCHEMA = "nidmap.run/1"

#: Exit code of `run` for its own refusal under ``--strict``.
REFUSED = 125

#: What is made before ``auto`` in case that is late, where no launcher has to be asked twice.
_QUICK = "boxes"

#: Options that a request takes as they are.
_ASKED = (
    "strategy", "mpi", "launcher_order", "order_dir", "patience", "mapping_limit",
    "order_file", "bind",
)  # fmt: skip

#: What is said of an order where there was no time to work out more.
UNTIMELY = "its gain was not worked out in time"

#: The part of the patience that choosing an order may take: as long as ``nidmap order`` usually.
_AUTO = 2 / 3

#: Seconds that a step which only says where its ranks are may take where patience has no limit,
#: or where the job does not run without its answer.
VERIFYING = 60.0

#: What is said of the order file that a dry run's command names.
NO_FILE = "a dry run leaves no order file: --order-dir DIR keeps one"


@dataclass(frozen=True, slots=True)
class RunCommand:
    """One call of ``nidmap run``.

    Attributes
    ----------
    command : tuple of str
        The launcher, its options, the program.
    job : JobArguments
        Machine, nodes, ranks and pattern; what it says may be wrong.
    options : mapping of str to any
        The options of a launch, by their names.
    """

    command: tuple[str, ...]
    job: JobArguments
    options: Mapping[str, Any]

    def show(self, as_json: bool, strict: bool) -> int:
        """Print the command that a run would start; ``--order-dir`` alone leaves its order file."""
        launch, unclear, lines = Launch(self.command), "", []
        known: dict[str, Any] = dict.fromkeys(("order_file", "strategy", "optimised", "gain"))
        try:
            job, made, expected = self.prepare()
            order, words = made.order, self.order_words(made.order, expected.words)
            kept = self.options["order_dir"] is not None
            where = f"the order file is {made.path}" if kept else NO_FILE
            lines = [words, *made.remarks, *job.asked_remarks(), where]
            known.update(order_file=made.path if kept else None, strategy=order.origin.strategy)
            if not kept:
                discard_launch(made.path)
            known.update(optimised=order.origin.optimised, gain=expected.gain)
            launch = made.launch
        except (Exception, SystemExit) as error:
            unclear = error_text(error)
            _tell({}, unclear, strict)
            if strict:
                return REFUSED
        said = {"argv": list(launch.argv), "env": launch.env, "command": launch.line()}
        document = {"schema": SCHEMA, **said, **known, "unclear": unclear}
        write_output(to_json(document) if as_json else launch.line() + "\n", None)
        for line in lines:
            say(f"nidmap: {line}")
        return 0

    def prepare(self) -> tuple[JobLaunch, Prepared, Expectation]:
        """Return what would be started, and what is expected of it; the launcher is asked nothing.

        Raises
        ------
        NidmapError
            What is unclear; no file is left behind.
        """
        job = self.read_job(dry=True)
        made = job.prepared()
        return job, made, job.expected(made.order)

    def start(self, strict: bool, verify: bool) -> int:
        """Become the launcher; come back only to say that it cannot be started."""
        patience = self.options["patience"]
        found = last_result(self._plan, patience)
        if found.get("interrupted"):
            discard_launch(found.get("path", ""))
            raise KeyboardInterrupt
        discard_launch(found.get("dropped", ""))
        env = job_environment(os.environ)
        patience = max(patience, VERIFYING) if strict or not patience else patience
        unclear = found.get("unclear", "")
        if verify and not unclear:
            unclear = _verify(found, env, strict, patience)
        _tell(found, unclear, strict)
        if unclear:
            discard_launch(found.get("path", ""))
            if strict:
                return REFUSED
            found = {"argv": self.command, "env": {}, "path": ""}
        elif self.options["order_dir"] is None:
            remove_at_end(found["path"])
        try:
            become(Launch(tuple(found["argv"]), found["env"]), env)
        except NidmapError:
            discard_launch(found["path"])
            raise
        return 0  # exec does not return

    def _plan(self) -> Iterator[dict[str, Any]]:
        """Plan and yield what the parent needs of it, a quick order first; in the child process.

        What is expected of an order is worked out when it could start.
        """
        job, dropped = self.read_job(dry=False), ""
        given = self.options
        auto = given["strategy"] == "auto" and given["order_file"] is None
        if auto and given["patience"] and not job.how.asks_order:
            with contextlib.suppress(NidmapError):
                quick = job.prepared(job.ordered(_QUICK))
                yield {**self._for_parent(quick, UNTIMELY), "quick": True}
                dropped = quick.path
        try:
            made = job.prepared()
        except Exception:
            discard_launch(dropped)
            raise
        yield {**self._for_parent(made, UNTIMELY), "dropped": dropped}
        try:
            words = job.expected(made.order).words
        except Exception as error:  # the order is there, whatever is expected of it
            words = f"{expectations.UNKNOWN}: {error_text(error, 80)}"
        remarks = [*made.remarks, *job.asked_remarks()]
        yield {**self._for_parent(made, words), "dropped": dropped, "remarks": remarks}

    def _for_parent(self, made: Prepared, expected: str) -> dict[str, Any]:
        """Return what the parent needs of a plan, as JSON holds it."""
        return {
            "argv": made.launch.argv,
            "env": made.launch.env,
            "path": made.path,
            "probe": made.probe.argv,
            "rank_nodes": made.rank_nodes,
            "remarks": made.remarks,
            "words": self.order_words(made.order, expected),
        }

    def order_words(self, order: Placement, expected: str) -> str:
        """Return which order is taken, by what it was chosen, and what is expected of it."""
        pattern = f" of {order.origin.pattern}" if order.origin.pattern else ""
        path = self.options["order_file"]
        source = f" from {path}" if path is not None else ""
        strategy = f"{order.origin.strategy} " if order.origin.strategy else ""
        head = f"{strategy}order{pattern}{source} on {order.words()}"
        chosen = order.origin.optimised
        if chosen is None:
            return f"{head}; {expected}"
        if chosen["by"] == "time" and order.origin.strategy != "auto: row-major":
            return f"{head}, by predicted time; {expected}"
        return f"{head}; {order.origin.remark}"

    def read_job(self, dry: bool) -> JobLaunch:
        """Return what the command would start, before any order is thought of.

        Parameters
        ----------
        dry : bool
            True where nothing will be started, nor asked.
        """
        given = self.options
        nodes, host_file = _node_text(self.job.nodes)
        if given["order_file"] == "-":
            raise UsageError("standard input belongs to the program", "give --order a file")
        request = launch_job.RunRequest(
            self.job.job(needed=False),
            nodes=nodes,
            host_file=host_file,
            dry=dry,
            seconds=_AUTO * given["patience"] or math.inf,
            **{name: given[name] for name in _ASKED},
        )
        step()
        machine = self._machine(bool(named_specs(self.job.specs)))
        step()
        return launch_job.read_job(self.command, request, os.environ, machine)

    def _machine(self, named: bool) -> Machine | None:
        """Return the machine; where none is named the one that this is, if a job's nodes are it."""
        if named:
            return machine_from(self.job.specs)
        try:
            job = allocations.allocation(os.environ)
            if job is None:
                return None
            machine = machine_from(())
        except NidmapError:
            return None  # names alone are enough for an order by J
        return machine if set(job.nodes) <= set(machine.names.tolist()) else None

    def start_inside(self, world: bool, strict: bool, dry_run: bool, mpicc: str = "") -> int:
        """Become the launcher, with a library before its ranks that gives them their order.

        The ranks themselves say where they are.

        Parameters
        ----------
        world : bool
            Whether MPI_COMM_WORLD itself is reordered.
        strict : bool
            Do not run what the library cannot be loaded before.
        dry_run : bool
            Print the command instead.

        Returns
        -------
        int
            Only where nothing was started: 0, or `REFUSED`.

        Raises
        ------
        UsageError
            Nodes or ranks, or a world of which nothing says who talks to whom.
        LaunchError
            The command cannot be started.
        """
        how, env = self._answerer(world), job_environment(os.environ)
        variables = {
            "NIDMAP_ASK": answer.asking_command(how),
            **({"NIDMAP_WORLD": "1"} if world else {}),
        }
        specs = how.machine.split()
        try:
            if "-" in specs:
                why = "--inside asks for the order later, and cannot read this -m - then"
                raise UsageError(why)
            if specs:
                load.load_machine(*specs)  # what is wrong with it is said before the ranks start
            libraries = build.libraries_for(self.command, env, mpicc)
            argv, more = build.preload(self.command, libraries, variables, env)
            launch = Launch(tuple(argv), more)
        except (NidmapError, OSError) as error:
            _tell({}, str(error), strict)
            if strict:
                return REFUSED
            launch = Launch(self.command)
        if dry_run:
            write_output(launch.line() + "\n", None)
            return 0
        become(launch, env)
        return 0  # exec does not return

    def _answerer(self, world: bool) -> Answerer:
        """Return what the ranks are answered."""
        job, given, path = self.job, self.options, self.options["order_file"]
        if job.nodes or job.ppn:
            raise UsageError("--inside finds nodes and ranks itself: drop --nodes and --ppn")
        pattern = job.named_pattern(needed=False)
        if world and not (pattern or path):
            why = "who talks to whom is not known yet"
            raise UsageError("--world needs --pattern or --order", why)
        return answer.Answerer(
            " ".join(named_specs(job.specs)),
            "" if given["strategy"] == "auto" else given["strategy"],
            os.path.abspath(path) if path else "",
            job={"pattern": pattern, **job.sending()},
            quiet=bool(click.get_current_context().meta.get("quiet")),
        )


def _tell(found: dict[str, Any], unclear: str, strict: bool) -> None:
    """Say on stderr what is started, or why it is not what was asked for."""
    if unclear:
        _say_safely(f"{unclear}: " + ("not started (--strict)" if strict else "default order"))
    else:
        if found.get("late") and found.get("quick"):
            _say_safely(f"{found['late']}: {_QUICK} order instead of auto")
        _say_safely(found["words"])
    for remark in found.get("remarks", ()):
        _say_safely(remark)


def _verify(found: dict[str, Any], env: dict[str, str], strict: bool, seconds: float) -> str:
    """Run a step that says where its ranks are and compare; return what is wrong, '' if nothing.

    That it says nothing in so many seconds is no reason to drop the order, unless `strict`.
    """
    plan = found["rank_nodes"]
    try:
        hosts = query_rank_nodes(
            Launch(tuple(found["probe"]), found["env"]), env, len(plan), seconds
        )
    except LaunchError as error:
        if strict:
            return f"cannot verify: {error}"
        _say_safely(f"cannot verify: {error}")
        return ""
    pairs = zip(hosts, plan, strict=True)
    wrong = [r for r, (one, two) in enumerate(pairs) if plain_host(one) != plain_host(two)]
    if wrong:
        r = wrong[0]
        return (
            f"{len(wrong)} of {len(plan)} ranks are not where the plan says, "
            f"first rank {r}: on {hosts[r]}, planned {plan[r]}"
        )
    _say_safely(
        f"verified: all {len(plan)} ranks are where the plan says, on {len(set(plan))} nodes"
    )
    return ""


def _node_text(nodes: str | None) -> tuple[str | None, bool]:
    """Return the text of ``run --nodes``, and whether it is that of a host file."""
    if nodes is None:
        return None, False
    if nodes == "-":
        raise UsageError("standard input belongs to the program", "give --nodes a list or a file")
    text, source = pasted.read_list(nodes, "--nodes")
    return text, source != "--nodes"


def _say_safely(text: str) -> None:
    """Write one line on stderr; that it is closed must not cost the user their job."""
    with contextlib.suppress(OSError, ValueError):
        say(f"nidmap: {printable(text, 500)}")
