# SPDX-License-Identifier: Apache-2.0
"""Unknowns of a machine, a library and a program: their likely and alternative values.

Routers that adapt divide bytes as well as possible, but detours cost something
(`nidmap.placement.network.usual_loss`). Where nothing says whether an InfiniBand
fabric of groups adapts, its own routing is likely, and the best division the other value.

From its first message to its last a rank of a recorded run is in MPI or works outside. Work comes
on top of communication, and so does the time in MPI beyond the predicted communication, which has
other causes: processors that handle messages, ranks that come late.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from nidmap.placement.fabrics import known_fabric
from nidmap.placement.network import LEAST_LOSS, MOST_LOSS
from nidmap.placement.support.quantities import time_text
from nidmap.rankmap.collectives import USUAL
from nidmap.rankmap.collectives.libraries import library_of, other_library
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.predict.background import USUAL_LOAD
from nidmap.rankmap.predict.constants import NOTHING, Constants, RunSeconds
from nidmap.rankmap.predict.job import ALGORITHMS, fit_pattern
from nidmap.rankmap.predict.model import Model, Timed
from nidmap.rankmap.recording import Recording

#: GB/s of a slow rank if the network is unknown (Aseeri et al., IV-B).
SLOW_RANK = 2.0

#: The least share of their interfaces that exchanges between many nodes reach (LUMI-G).
LEAST_REACH = 0.55

#: GB/s of copies inside a node where nothing states them: of an old node, and half of what the
#: memory of today's nodes moves, 400 GB/s [assumed].
OLD_NODE, NODE_OF_TODAY = 10.0, 200.0

#: Work of a recorded run that may hide after its communication, as a share of it, and shows where
#: that is shorter: assumed; found on CloverLeaf, which communicates 2.0 of its best 2.7 s.
HIDDEN = 0.25

#: Factor by which the time of an additional link may differ (Slingshot's local and global ones;
#: De Sensi and others, SC20).
HOP_SPREAD = 1.25

#: How much more and less ranks run ahead on one placement than on another, as a share
#: (Aseeri and others, Table IV; the placements of docs/recording.md).
APART = 0.5

#: How far predictions of recorded programs' communication are off where nothing else explains it:
#: nine of ten of the placements of docs/reference/recording.md, each program judged by the others.
MISFIT = 1.1


class OtherValue(NamedTuple):
    """Another value of an unknown, with a description such as ``a rank sends 2 GB/s``."""

    words: str
    changes: dict[str, Any]  # of the assumptions
    base: dict[str, Any] | None = None  # of those for the baseline; None: the same

    def change(self, assumed: list[Constants]) -> list[Constants]:
        """Return assumptions for one placement, or for a plan and its baseline, so changed."""
        parts = self.changes, self.changes if self.base is None else self.base
        return [replace(one, **part) for one, part in zip(assumed, parts, strict=False)]


class OpenQuestion(NamedTuple):
    """An unknown before its effect is computed: its values other than the likely one."""

    name: str
    question: str
    others: list[OtherValue]


def _values(name: str, words: str, *values: Any) -> list[OtherValue]:
    """Return other values of one assumption, with words in which each stands."""
    return [OtherValue(words.format(value), {name: value}) for value in values]


def unknowns_of(model: Model, times: list[Timed]) -> Iterator[OpenQuestion]:
    """Yield the unknowns in the timing of placements, with values other than the likely ones.

    `times`: of one placement, or of a plan and the baseline.
    """
    yield from _vary_routing(model)
    yield from _vary_algorithm(model, times)
    yield from _vary_bandwidths(model)
    if not model.job.others and all(len(model.crowd(timed.placement)) > 1 for timed in times):
        question = f"traffic of other jobs, none or {USUAL_LOAD:g} GB/s per busy node"
        others = _values("others", f"other jobs send {USUAL_LOAD:g} GB/s per busy node", True)
        yield OpenQuestion("others", question, others)
    phases = [phase for timed in times for phase in timed.phases]
    if isinstance(model.pattern, Stencil) and not model.pattern.staged:
        question = "halo exchange, all at once or direction by direction (stencil:…,staged)"
        others = _values("staged", "the halo is exchanged direction by direction", True)
        yield OpenQuestion("staging", question, others)
    if any(phase.steps is not None and not phase.dependent for phase in phases):
        yield _vary_overlap(model, several=len(times) > 1)
    yield from _vary_rest(model, times)
    gbs = model.constants.memory_gbs
    assumed = model.constants.memory_source == "assumed"
    if gbs is not None and assumed and any(phase.inside for phase in phases):
        span = max(OLD_NODE, gbs / 2), max(NODE_OF_TODAY, 2 * gbs)
        others = _values("memory_gbs", "the ranks of a node copy {:g} GB/s together", *span)
        yield OpenQuestion("memory", f"intra-node bandwidth, {gbs:g} GB/s assumed", others)


def _vary_routing(model: Model) -> Iterator[OpenQuestion]:
    """Yield the cost of diverting packets, unless the routing is known."""
    topology = model.machine.topology
    several = topology.parameters.get("routings", ())
    if model.routing == "adaptive":
        others = _values("loss", "detours of all bytes cost {:.0%}", LEAST_LOSS, MOST_LOSS)
        unsaid = "loss" not in topology.parameters
    else:
        words = "routers divide bytes as well as possible"
        others = [OtherValue(words, {"routing": "adaptive", "loss": 0.0})]
        unsaid = "adaptive" in several if several else topology.fabric == "infiniband"
        unsaid = unsaid and model.may_adapt
    if unsaid:
        question = "how well routers divert packets around full links"
        yield OpenQuestion("routing", question, others)


def _vary_algorithm(model: Model, times: list[Timed]) -> Iterator[OpenQuestion]:
    """Yield the algorithm of an all-to-all or a collective, if the library chooses it.

    What is stated leaves versions, tuning files and vendors open: another library's rules. How far
    ranks run ahead stands for at once where an exchange in steps is likely.
    """
    recording, other = model.recording, other_library(library_of(model.mpi))
    if recording is not None and any(phase.collectives for phase in recording.phases):
        question = f"collectives of the program, as {model.mpi or 'libraries usually'} or {other}"
        others = _values("algorithm", "collectives follow the rules of {}", other)
        yield OpenQuestion("algorithm", question, others)
    if model.algorithm != "library":
        return
    if isinstance(model.pattern, Collective):
        names = list(dict.fromkeys(USUAL[model.pattern.name][:2]))
        question = f"algorithm of the collective, {' or '.join(names)}"
        if model.mpi:  # its library's own choice, but for versions and tuning
            names = [other]
            question = f"algorithm of the collective, as {model.mpi} or {other} chooses it"
    else:
        patterns = (fit_pattern(model.pattern, timed.placement) for timed in times)
        chosen = {name for pattern in patterns for name in model.algorithms(pattern)}
        names = [name for name in ("pairwise", ALGORITHMS[0]) if name not in chosen][:1]
        if chosen <= {"pairwise", "scattered"}:
            names = []
        question = "algorithm of the all-to-all, posted at once or in steps"
    if names:  # with different algorithms for rows and columns there is no third one
        others = _values("algorithm", "the library uses {}", *names)
        yield OpenQuestion("algorithm", question, others)


def _vary_bandwidths(model: Model) -> Iterator[OpenQuestion]:
    """Yield what a single rank can send, and the payload share of the wire."""
    topology, figures = model.machine.topology, model.constants
    stated = topology.parameters
    fabric = known_fabric(topology)
    if figures.reach < 1:
        words = "exchanges reach {:.0%} of a NIC's bandwidth"
        others = _values("reach", words, LEAST_REACH, 1.0)
        yield OpenQuestion("interface", "share of NIC bandwidth that exchanges reach", others)
    if stated.get("process_mark", "assumed") == "assumed" and figures.reach == 1:
        own_gbs = topology.bandwidth.get("injection", topology.bandwidth.get("up0", math.inf))
        slow = max(SLOW_RANK, own_gbs / 20) if own_gbs < math.inf else SLOW_RANK
        rates = fabric.rank_gbs or (slow,)
        posted = rates[-1], None  # alone it is slower only if all-to-alls are as slow
        others = [
            OtherValue(f"a rank sends {gbs:g} GB/s", {"process_gbs": gbs, "posted_gbs": at_once})
            for gbs, at_once in zip(rates, posted, strict=False)
        ]
        yield OpenQuestion("process", f"bandwidth of one rank, {rates[0]:g} GB/s or more", others)
    if fabric.payload < 1 and "payload" not in stated:
        question = f"payload of the links, all of the wire or {fabric.payload:.0%}"
        others = _values("payload", "{:.0%} of the wire is payload", fabric.payload)
        yield OpenQuestion("payload", question, others)
    if figures.hop_ns:
        question = f"what one more link takes, {figures.hop_ns:g} ns by its machine's kind"
        ends = figures.hop_ns / HOP_SPREAD, figures.hop_ns * HOP_SPREAD
        others = _values("hop_ns", "each additional link takes {:.0f} ns", *ends)
        yield OpenQuestion("hops", question, others)


def _vary_overlap(model: Model, several: bool) -> OpenQuestion:
    """Return how far ranks run ahead in steps that no barrier parts.

    `several`: whether placements are compared: the program is the same, how its ranks sit is not.
    """
    others = [
        OtherValue("no rank runs ahead of others", {"ahead": 0.0}),
        OtherValue("ranks run ahead of others freely", {"ahead": 1.0}),
    ]
    if several:
        words = "ranks run ahead of others less than in what it is compared with"
        less, more = ({"ahead": model.constants.ahead * (1 + by)} for by in (-APART, APART))
        others += [OtherValue(words, less, more), OtherValue(words, more, less)]
    return OpenQuestion("overlap", "how far ranks run ahead of others from step to step", others)


def _vary_rest(model: Model, times: list[Timed]) -> Iterator[OpenQuestion]:
    """Yield how well a recorded run is predicted, and its work besides communication.

    All seconds in MPI may be communication's, which is predicted too short then. Other causes may
    take longer elsewhere, and work may hide after the baseline's communication. Of a run that was
    recorded on another machine nobody knows what of both is left.
    """
    if model.recording is not None:
        end = math.sqrt(MISFIT) if len(times) > 1 else MISFIT
        words = "messages take longer than predicted there"
        longer, shorter = {"fit": end}, {"fit": 1 / end}
        others = [OtherValue(words, longer, shorter), OtherValue(words, shorter, longer)]
        yield OpenQuestion("fit", "how well messages of programs are predicted", others)
    recording = comparable_recording(model)
    if recording is None or len(times) < 2:
        return
    communication_s = times[1].seconds(model.constants)
    work, rest, meanwhile = other_seconds(model, recording, communication_s)
    least = NOTHING
    if recording.ran_on(model.machine):
        took_s, worked_s = run_seconds(model, recording)
        in_mpi_s = max(took_s - worked_s, communication_s)
        least = RunSeconds(worked_s * communication_s / in_mpi_s if in_mpi_s else work)
    hidden = min(work, HIDDEN * communication_s)
    most = RunSeconds(work, 2 * rest, meanwhile + hidden)
    less = OtherValue("the run does less besides communication", {"run": least})
    more = OtherValue("the run does more besides communication", {"run": most})
    recorded = time_text((work + rest + meanwhile) * (model.constants.slowed or 1.0))
    question = f"what the run does besides communication, {recorded} as recorded"
    yield OpenQuestion("rest", question, [less, more])


def comparable_recording(model: Model) -> Recording | None:
    """Return a recording whose run time is comparable with the model's; None if there is none."""
    recording = model.recording
    if recording is None or recording.window or recording.seconds <= 0:
        return None
    return None if model.constants.slowed is None else recording


def run_seconds(model: Model, recording: Recording) -> tuple[float, float]:
    """Return a recorded run's time from first to last message, and its work.

    An older recording has its whole run, and no work: nobody knows how much it was.

    `recording`: that is comparable. Seconds, as the model's are.
    """
    scale = model.size / (model.constants.slowed or 1.0)
    return (recording.exchange_s or recording.seconds) * scale, recording.work_s * scale


def other_seconds(model: Model, recording: Recording, communication_s: float) -> RunSeconds:
    """Return a run's work besides its predicted communication, if it was recorded.

    Ranks that are in MPI for less than communication takes work meanwhile: as much as makes up for
    it, or all that they work.
    """
    took_s, work_s = run_seconds(model, recording)
    in_mpi_s = took_s - work_s
    if in_mpi_s >= communication_s:
        return RunSeconds(work_s, in_mpi_s - communication_s)
    longer = (communication_s**2 - in_mpi_s**2) / (2 * in_mpi_s) if in_mpi_s > 0 else work_s
    meanwhile_s = min(work_s, longer)
    return RunSeconds(work_s - meanwhile_s, meanwhile=meanwhile_s)
