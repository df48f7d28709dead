# SPDX-License-Identifier: Apache-2.0
"""A study: many replays of one trace (policies, communication shares, seeds), kept as they end."""

from __future__ import annotations

import hashlib
import io
import json
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.machine import Machine, once
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.placement.support.array_types import Mask
from nidmap.placement.support.writing import write_output
from nidmap.rankmap.past_jobs import UNKNOWN, application_of
from nidmap.rankmap.past_jobs import Application as Known
from nidmap.rankmap.tasks import run_tasks
from nidmap.workloads.replay.check import check_text
from nidmap.workloads.replay.engine import Outcome, Replay
from nidmap.workloads.replay.results import summarize
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.sharing import JobTraffic, Network
from nidmap.workloads.replay.trace import Trace

#: Policies that do not look at the network.
_PLAIN = "slurm", "none", "tree", "switches"


class Case(NamedTuple):
    """One replay: a policy, the communication share of unknown jobs, a seed."""

    policy: str
    share: float
    seed: int

    @property
    def label(self) -> str:
        """Its name in file names."""
        return f"{self.policy}-share{self.share:g}-seed{self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What is to be replayed."""

    machine: Machine
    traces: tuple[Trace, ...]  # one for all seeds, or one per seed
    cases: tuple[Case, ...]
    rules: Rules
    up: Mask  # (n,)
    # applications: known jobs (`nidmap.rankmap.past_jobs.read_applications`)
    applications: tuple[Known, ...] = ()
    ppn: int = 1  # ranks per node where unknown
    folder: str = ""  # where replays are kept; '' means nowhere

    def trace(self, case: Case) -> Trace:
        """Return the trace of a case."""
        return self.traces[case.seed % len(self.traces)]

    @property
    def key(self) -> str:
        """A hash of all that results depend on besides the case: others are not resumed."""
        digest = hashlib.sha256()
        for trace in self.traces:
            for column in (trace.submit, trace.run, trace.limit, trace.nodes):
                digest.update(np.ascontiguousarray(column).tobytes())
            digest.update("\0".join([*trace.user.tolist(), *trace.name.tolist()]).encode())
        machine = self.machine
        network = sorted((name, repr(value)) for name, value in machine.topology.parameters.items())
        parts = (machine.name, network, self.up.tobytes(), self.rules, self.applications, self.ppn)
        digest.update(repr(parts).encode())
        return digest.hexdigest()[:16]


def draw_applications(study: Study, case: Case) -> list[JobTraffic]:
    """Return what each job communicates, drawn by the seed where it is unknown.

    Jobs of the same user and name communicate alike. Of unknown patterns half are stencils and
    half all-to-alls; a share known as a range is drawn from it.
    """
    trace, known = study.trace(case), {}
    for label in sorted(set(zip(trace.name.tolist(), trace.user.tolist(), strict=True))):
        record = JobRecord("", NodeList(), *label)
        app = application_of(record, study.applications)
        word = "\0".join((str(case.seed), *label)).encode()
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(word).digest()[:8], "big"))
        patterns, (low, _, high) = app.patterns, app.share
        stated = app is not UNKNOWN and app.communication is not None
        share = float(rng.uniform(low, high)) if stated else case.share
        pattern = patterns[int(rng.integers(len(patterns)))]
        known[label] = JobTraffic(pattern, app.ppn or study.ppn, app.bytes, share)
    return [known[label] for label in zip(trace.name.tolist(), trace.user.tolist(), strict=True)]


def run_case(study: Study, case: Case, told: Callable[[float], None] | None = None) -> Outcome:
    """Replay one case."""
    applications = draw_applications(study, case)
    silent = case.policy in _PLAIN and all(app.share == 0 for app in applications)
    network = None if silent else _network(study.machine)
    replay = Replay(
        study.machine, study.trace(case), case.policy, study.rules, study.up,
        None if silent else applications, network,
    )  # fmt: skip
    return replay.run(told)


@once
def _network(machine: Machine) -> Network:
    """Return the machine's network, made once per process."""
    return Network(machine)


def check_study(study: Study, samples: int) -> str:
    """Compare quick times of the first case with full predictions; return a sentence."""
    case = study.cases[0]
    network, trace = _network(study.machine), study.trace(case)
    apps, outcome = draw_applications(study, case), run_case(study, case)
    return check_text(network, trace, apps, outcome, samples)


# --- many cases ---------------------------------------------------------------------


def _do_case(shared: tuple[Study, str], case: Case) -> dict[str, Any]:
    """Replay a case, keep it and return its figures."""
    study, key = shared
    begun = time.process_time()
    outcome = run_case(study, case)
    summary = summarize(study.trace(case), outcome, int(study.up.sum()))
    if study.folder:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cost = time.process_time() - begun, most  # processor seconds, MiB of the process so far
        keep_case(study.folder, key, case, outcome, summary, cost)
    return summary


def run_study(
    study: Study, resumed: bool, told: Callable[[float, str], None] | None = None
) -> dict[Case, dict[str, Any]] | None:
    """Replay all cases, except those kept from before if `resumed`."""
    key = study.key
    kept = ((case, kept_summary(study.folder, key, case)) for case in study.cases if resumed)
    done = {case: summary for case, summary in kept if summary is not None}
    missing = [case for case in study.cases if case not in done]
    results = run_tasks(_do_case, missing, (study, key))
    if results is None:
        return None
    for number, summary in results:
        done[missing[number]] = summary
        if told is not None:
            share = len(done) / len(study.cases)
            told(share, f"{len(done)} of {len(study.cases)} replays")
    return {case: done[case] for case in study.cases}


def keep_case(
    folder: str, key: str, case: Case, outcome: Outcome, summary: dict[str, Any],
    cost: tuple[float, float],
) -> None:  # fmt: skip
    """Write a replay atomically."""
    raw = io.BytesIO()
    columns = {name: getattr(outcome, name) for name in Outcome.__slots__}
    np.savez_compressed(raw, key=key, summary=json.dumps(summary), cost=cost, **columns)
    write_output(raw.getvalue(), os.path.join(folder, f"{case.label}.npz"))


def kept_summary(folder: str, key: str, case: Case) -> dict[str, Any] | None:
    """Return the figures of a kept replay; None if this study has none."""
    path = os.path.join(folder, f"{case.label}.npz")
    if not os.path.exists(path):
        return None
    try:
        with np.load(path, allow_pickle=False) as kept:
            summary = json.loads(str(kept["summary"]))
            return summary if str(kept["key"]) == key and isinstance(summary, dict) else None
    except (OSError, ValueError, KeyError, EOFError) as error:
        hint = "remove it, or leave out --resume"
        raise ParseError(path, 0, f"is not a kept replay: {error}", hint) from None


def kept_outcome(folder: str, case: Case) -> Outcome:
    """Return a kept replay."""
    with np.load(os.path.join(folder, f"{case.label}.npz"), allow_pickle=False) as kept:
        columns = {name: kept[name] for name in Outcome.__slots__ if name != "past_limit"}
        return Outcome(**columns, past_limit=int(kept["past_limit"]))
