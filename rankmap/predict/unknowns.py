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
from typing import Any, NamedTuple

from nidmap.placement.fabrics import known_fabric
from nidmap.placement.network import LEAST_LOSS, MOST_LOSS, routings
from nidmap.placement.support.quantities import time_text
from nidmap.rankmap.collectives import USUAL
from nidmap.rankmap.collectives.libraries import library_of, other_library
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.predict.assumptions import NOTHING, RunSeconds, Values
from nidmap.rankmap.predict.background import USUAL_LOAD
from nidmap.rankmap.predict.job import ALGORITHMS
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.placement_times import PlacementTimes
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

    changes: dict[str, Any]
    words: str


class OpenQuestion(NamedTuple):
    """An unknown before its effect is computed: its values other than the likely one."""

    name: str
    question: str
    others: list[OtherValue]


def unknowns_of(
    model: Model, likely: Values, times: list[PlacementTimes]
) -> Iterator[OpenQuestion]:
    """Yield the unknowns in the timing of placements, with values other than the likely ones.

    `times`: of one placement, or of a plan and the baseline.
    """
    yield from _vary_routing(model)
    yield from _vary_algorithm(model, likely, times)
    yield from _vary_bandwidths(model, likely)
    if not model.background and all(timed.others is not None for timed in times):
        question = f"traffic of other jobs, none or {USUAL_LOAD:g} GB/s per busy node"
        other = OtherValue({"others": True}, f"other jobs send {USUAL_LOAD:g} GB/s per busy node")
        yield OpenQuestion("others", question, [other])
    yield from _vary_steps(likely, times)
    yield from _vary_rest(model, likely, times)
    gbs = model.constants.memory_gbs
    assumed = model.constants.memory_source == "assumed"
    if gbs is not None and assumed and any(timed.inside for timed in times):
        span = max(OLD_NODE, gbs / 2), max(NODE_OF_TODAY, 2 * gbs)
        words = "the ranks of a node copy {:g} GB/s together"
        others = [OtherValue({"memory": value}, words.format(value)) for value in span]
        yield OpenQuestion("memory", f"intra-node bandwidth, {gbs:g} GB/s assumed", others)


def _vary_routing(model: Model) -> Iterator[OpenQuestion]:
    """Yield the cost of diverting packets, unless the routing is known."""
    topology = model.machine.topology
    if model.routing == "adaptive":
        if "loss" in topology.parameters:
            return
        words = "detours of all bytes cost {:.0%}"
        others = [
            OtherValue({"loss": loss}, words.format(loss)) for loss in (LEAST_LOSS, MOST_LOSS)
        ]
    else:
        several = topology.parameters.get("routings", ())
        applies = "adaptive" in (several or routings(model.machine))
        unsaid = not model.routing_stated and (several or topology.fabric == "infiniband")
        if not (applies and unsaid):
            return
        others = [
            OtherValue(
                {"routing": "adaptive", "loss": 0.0}, "routers divide bytes as well as possible"
            )
        ]
    yield OpenQuestion("routing", "how well routers divert packets around full links", others)


def _vary_algorithm(
    model: Model, likely: Values, times: list[PlacementTimes]
) -> Iterator[OpenQuestion]:
    """Yield the algorithm of an all-to-all or a collective, if the library chooses it.

    What is stated leaves versions, tuning files and vendors open: another library's rules. How far
    ranks run ahead stands for at once where an exchange in steps is likely.
    """
    recording = model.pattern.recording if isinstance(model.pattern, Graph) else None
    if recording is not None and any(phase.collectives for phase in recording.phases):
        other = other_library(library_of(model.mpi))
        question = f"collectives of the program, as {model.mpi or 'libraries usually'} or {other}"
        words = f"collectives follow the rules of {other}"
        yield OpenQuestion("algorithm", question, [OtherValue({"algorithm": other}, words)])
    if likely.algorithm != "library":
        return
    question = "algorithm of the all-to-all, posted at once or in steps"
    chosen = {name for timed in times for name in model.algorithms(timed.pattern)}
    names = [name for name in ("pairwise", ALGORITHMS[0]) if name not in chosen][:1]
    if chosen <= {"pairwise", "scattered"} and not isinstance(model.pattern, Collective):
        return
    if isinstance(model.pattern, Collective):
        names = list(dict.fromkeys(USUAL[model.pattern.name][:2]))
        question = f"algorithm of the collective, {' or '.join(names)}"
        if model.mpi:  # its library's own choice, but for versions and tuning
            names = [other_library(library_of(model.mpi))]
            question = f"algorithm of the collective, as {model.mpi} or {names[0]} chooses it"
    others = [OtherValue({"algorithm": name}, f"the library uses {name}") for name in names]
    if others:  # with different algorithms for rows and columns there is no third one
        yield OpenQuestion("algorithm", question, others)


def _vary_bandwidths(model: Model, likely: Values) -> Iterator[OpenQuestion]:
    """Yield what a single rank can send, and the payload share of the wire."""
    topology, figures = model.machine.topology, model.constants
    stated = topology.parameters
    fabric = known_fabric(topology)
    if figures.reach < 1:
        others = [
            OtherValue({"reach": reach}, f"exchanges reach {reach:.0%} of a NIC's bandwidth")
            for reach in (LEAST_REACH, 1.0)
        ]
        yield OpenQuestion("interface", "share of NIC bandwidth that exchanges reach", others)
    if stated.get("process_mark", "assumed") == "assumed" and figures.reach == 1:
        own_gbs = topology.bandwidth.get("injection", topology.bandwidth.get("up0", math.inf))
        slow = max(SLOW_RANK, own_gbs / 20) if own_gbs < math.inf else SLOW_RANK
        rates = fabric.rank_gbs or (slow,)
        posted = rates[-1], None  # alone it is slower only if all-to-alls are as slow
        others = [
            OtherValue({"process": gbs, "posted": at_once}, f"a rank sends {gbs:g} GB/s")
            for gbs, at_once in zip(rates, posted, strict=False)
        ]
        yield OpenQuestion("process", f"bandwidth of one rank, {rates[0]:g} GB/s or more", others)
    if fabric.payload < 1 and "payload" not in stated:
        question = f"payload of the links, all of the wire or {fabric.payload:.0%}"
        other = OtherValue(
            {"payload": fabric.payload}, f"{fabric.payload:.0%} of the wire is payload"
        )
        yield OpenQuestion("payload", question, [other])
    if figures.hop_ns:
        question = f"what one more link takes, {figures.hop_ns:g} ns by its machine's kind"
        others = [
            OtherValue({"hop_ns": hop_ns}, f"each additional link takes {hop_ns:.0f} ns")
            for hop_ns in (figures.hop_ns / HOP_SPREAD, figures.hop_ns * HOP_SPREAD)
        ]
        yield OpenQuestion("hops", question, others)


def _vary_steps(likely: Values, times: list[PlacementTimes]) -> Iterator[OpenQuestion]:
    """Yield the unknowns of consecutive messages, and of those that wait."""
    if all(timed.staging for timed in times):
        question = "halo exchange, all at once or direction by direction (stencil:…,staged)"
        other = OtherValue({"staged": True}, "the halo is exchanged direction by direction")
        yield OpenQuestion("staging", question, [other])
    if any(timed.stepwise for timed in times):  # in steps that no barrier parts
        ends = [
            ((0.0, 0.0), "no rank runs ahead of others"),
            ((1.0, 1.0), "ranks run ahead of others freely"),
        ]
        if len(times) > 1:  # the program is the same, how its ranks sit is not
            words = "ranks run ahead of others less than in what it is compared with"
            apart = likely.ahead[0] * (1 - APART), likely.ahead[0] * (1 + APART)
            ends += [(apart, words), (apart[::-1], words)]
        others = [OtherValue({"ahead": values}, words) for values, words in ends]
        question = "how far ranks run ahead of others from step to step"
        yield OpenQuestion("overlap", question, others)


def _vary_rest(model: Model, likely: Values, times: list[PlacementTimes]) -> Iterator[OpenQuestion]:
    """Yield how well a recorded run is predicted, and its work besides communication.

    All seconds in MPI may be communication's, which is predicted too short then. Other causes may
    take longer elsewhere, and work may hide after the baseline's communication. Of a run that was
    recorded on another machine nobody knows what of both is left.
    """
    if isinstance(model.pattern, Graph) and model.pattern.recording is not None:
        end = math.sqrt(MISFIT) if len(times) > 1 else MISFIT
        words = "messages take longer than predicted there"
        others = [OtherValue({"fit": fit}, words) for fit in (end, 1 / end)]
        yield OpenQuestion("fit", "how well messages of programs are predicted", others)
    recording = comparable_recording(model)
    if recording is None or len(times) < 2:
        return
    communication_s = times[1].seconds(likely, 0)
    work, rest, meanwhile = other_seconds(model, recording, communication_s)
    least = NOTHING
    if recording.ran_on(model.machine):
        took_s, worked_s = run_seconds(model, recording)
        in_mpi_s = max(took_s - worked_s, communication_s)
        least = RunSeconds(worked_s * communication_s / in_mpi_s if in_mpi_s else work)
    hidden = min(work, HIDDEN * communication_s)
    most = RunSeconds(work, 2 * rest, meanwhile + hidden)
    less = OtherValue({"run": least}, "the run does less besides communication")
    more = OtherValue({"run": most}, "the run does more besides communication")
    recorded = time_text((work + rest + meanwhile) * (model.constants.slowed or 1.0))
    question = f"what the run does besides communication, {recorded} as recorded"
    yield OpenQuestion("rest", question, [less, more])


def comparable_recording(model: Model) -> Recording | None:
    """Return a recording whose run time is comparable with the model's; None if there is none."""
    recording = model.pattern.recording if isinstance(model.pattern, Graph) else None
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
