"""What a placement wins against another one, as a range over what is not known of the machine.

Loads of links are exact, but what programs and networks make of them is only partly
known: whether routers send packets around full links, which algorithm the MPI library
takes, what one rank can send, how much of the wire is payload, what other jobs send,
what copies inside a node cost, whether an exchange is posted at once or dimension by
dimension, how far ranks run ahead from step to step, whether they wait until what they send is
received, what a recorded program does beside communication. Each of these is an *unknown* with a
likely value and another one, unless the caller or the site states it. A gain is the ratio of two
times under the same values:

* `likely` takes the likely value of every unknown;
* each unknown alone set to its other value moves the gain by some factor;
* unknowns are independent, so `low` and `high` add the factors below and above 1 up as
  independent errors are: the logarithms' squares, and their root.

Routers that adapt keep to minimal ways while these are less than so many times as full as
detours (`placement.network.adaptive`): the likely value is what was measured or is assumed of
the fabric, the ends are the best division there is, and routers that hardly take
detours (`placement.network.largest_bias`). Where nothing says whether an InfiniBand
fabric of groups adapts, its own routing is likely, and the best division the other value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from placement.fabrics import known_fabric
from placement.network import Loads, largest_bias, routings, usual_bias
from placement.support.array_types import Floats, Ints
from placement.support.quantities import time_text
from rankmap.collectives import USUAL
from rankmap.pattern.collective import Collective
from rankmap.pattern.graph import RECORDING, Graph
from rankmap.pattern.structured import Stencil
from rankmap.placement import Placement
from rankmap.predict.algorithms import ALGORITHMS
from rankmap.predict.background import USUAL_LOAD, shared_channels
from rankmap.predict.constants import ARIES_PAYLOAD
from rankmap.predict.job_pattern import fit_pattern
from rankmap.predict.model import Model, StepLoads
from rankmap.predict.phase import Course, Phase
from rankmap.progress import step
from rankmap.recording import Recording

__all__ = ["Gain", "Gains", "Unknown", "time_range"]

GB = 1e9

#: GB/s of one rank on Aries, and where nothing says what the network is (Aseeri et al., IV-B).
SLOW_RANK = 2.0

#: GB/s of copies inside a node where nothing states them: of an old node, and half of what the
#: memory of today's nodes moves, 400 GB/s [assumed].
OLD_NODE, NODE_OF_TODAY = 10.0, 200.0

#: Share of a recorded run that communication has at most, below which it is said.
HALF_OF_RUN = 0.5

#: An unknown that moves a figure by no larger share is not spoken of.
SAME = 5e-3

#: What ranks that run ahead may win, of what posting all at once would win. Messages of different
#: steps that meet may lose them as much, and at least a step.
AHEAD = 0.5

#: Bytes up to which libraries usually send a message eagerly: Open MPI's over TCP
#: (``btl_tcp_eager_limit``); others begin to announce messages sooner (libfabric's rxm, which
#: MPICH's ch4:ofi uses on TCP, at 16 kB, Cray MPICH at 8 kB on Aries and 16 kB on Slingshot).
EAGER = 65536.0


#: Jobs of more nodes are large, and steps of their exchanges that are looked at by values of the
#: unknowns that are not likely.
LARGE, SOME_STEPS = 1024, 2


class _Other(NamedTuple):
    """Another value of an unknown, and what one would say of it: ``a rank sends 2 GB/s``."""

    changes: dict[str, Any]
    words: str


class Unknown(NamedTuple):
    """What is not known, and what it does to a gain.

    Attributes
    ----------
    name : str
        ``routing``, ``algorithm``, ``process``, ``payload``, ``others``,
        ``memory``, ``staging``, ``overlap``, ``eager`` or ``rest``.
    question : str
        What one would have to know.
    low, high : float
        The gain with this unknown alone at its other values.
    lowest : str
        Its value at which the gain is `low`; '' where that is the likely one.
    """

    name: str
    question: str
    low: float
    high: float
    lowest: str = ""


class Gain(NamedTuple):
    """How many times as fast one placement is as another.

    Attributes
    ----------
    low, likely, high : float
        Of an independent error each, and never beyond what all unknowns do together.
    unknowns : tuple of Unknown
        What makes most difference first; those that make none are left out.
    communicates : float
        Share of the baseline's run that is communication, at most: all of it, 1, but for a
        recording whose seconds are known.
    """

    low: float
    likely: float
    high: float
    unknowns: tuple[Unknown, ...] = ()
    communicates: float = 1.0

    @property
    def range_text(self) -> str:
        """The range for a person: ``1.1 to 1.3 x``, or ``1.2 x`` where nothing is unsure.

        Examples
        --------
        >>> Gain(1.1, 1.2, 1.304).range_text, Gain(1.2, 1.2, 1.2).range_text
        ('1.1 to 1.3 x', '1.2 x')
        """
        if math.isinf(self.likely):
            return "any number of times"
        low, high = (f"{value:.2f}".rstrip("0").rstrip(".") for value in (self.low, self.high))
        return f"{low} x" if low == high else f"{low} to {high} x"

    @property
    def losing(self) -> Unknown | None:
        """The unknown at whose other value the placement loses most, alone; None where at none.

        Examples
        --------
        >>> unsure = Unknown("memory", "whether …", 0.6, 4.2, "the ranks of a node copy 200 GB/s")
        >>> Gain(0.6, 1.2, 4.2, (unsure,)).losing.lowest
        'the ranks of a node copy 200 GB/s'
        """
        worst = min(self.unknowns, key=lambda unknown: unknown.low, default=None)
        return worst if worst is not None and worst.low < 1 - SAME else None

    @property
    def loses_if(self) -> str:
        """Say at which plausible value the placement loses; '' where at none.

        Examples
        --------
        >>> unsure = Unknown("memory", "whether …", 0.6, 4.2, "the ranks of a node copy 200 GB/s")
        >>> Gain(0.6, 1.2, 4.2, (unsure,)).loses_if
        '1.67 times slower if the ranks of a node copy 200 GB/s'
        """
        worst = self.losing
        return "" if worst is None else f"{1 / worst.low:.2f} times slower if {worst.lowest}"

    @property
    def of_run(self) -> str:
        """Say what share of a recorded run communication is; '' where it may be more than half.

        Examples
        --------
        >>> Gain(1.0, 1.01, 1.02, communicates=0.021).of_run
        'communication is at most 2.1% of the recorded run: no placement gains more than 1.02 x'
        """
        if self.communicates > HALF_OF_RUN:
            return ""
        most = 1 / (1 - self.communicates)
        return (
            f"communication is at most {self.communicates:.1%} of the recorded run:"
            f" no placement gains more than {most:.3g} x"
        )

    @property
    def most_unsure(self) -> str:
        """What makes most difference, as a question; '' where nothing does."""
        return self.unknowns[0].question if self.unknowns else ""

    def document(self) -> dict[str, Any]:
        """Return the gain as JSON takes it: None where the placement takes no time at all."""
        ends = (self.low, self.likely, self.high)
        low, likely, high = (value if math.isfinite(value) else None for value in ends)
        return {
            "low": low,
            "likely": likely,
            "high": high,
            "unknowns": [unknown._asdict() for unknown in self.unknowns],
            "communicates": self.communicates,
        }


class _Values(NamedTuple):
    """One assumption for each figure that is not known of the machine or the library.

    Attributes
    ----------
    bias : float or None
        How many times as full as detours minimal ways may be; None: as the routing has it.
    algorithm : str
    process : float or None
    payload : float
    memory : float or None
    others : bool
    staged : bool
    overlap : tuple of float
        For each placement, 0: its steps follow each other; 1: ranks win by running ahead all that
        they may; -1: they lose by it.
    eager : float
        Bytes up to which a message is done for its sender when it is handed over.
    rest : float
        Seconds of a recorded run beside its communication.
    """

    bias: float | None
    algorithm: str
    process: float | None
    payload: float
    memory: float | None
    others: bool = False
    staged: bool = False
    overlap: tuple[float, ...] = (0.0, 0.0)
    eager: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _SentAtOnce:
    """Bytes that cross the network at the same time, on channels and on nodes' own links.

    Attributes
    ----------
    times : float
        Steps that it stands for.
    channels : int64 (k,)
        The channels that it uses.
    load : float64 (k,)
        Bytes on them.
    node_link_s : float
        Seconds of the busiest node's own link.
    message : float
        Bytes of the busiest rank.
    """

    times: float
    channels: Ints
    load: Floats
    node_link_s: float
    message: float


@dataclass(frozen=True, slots=True, eq=False)
class _PhaseTimes:
    """The bytes of a phase, together and step by step, and its seconds that bytes do not change."""

    together: _SentAtOnce
    steps: tuple[_SentAtOnce, ...]
    inside: float
    fixed: float
    dependent: bool
    course: Course | None


class Gains:
    """How many times as fast placements are as a baseline, over all that is not known.

    Parameters
    ----------
    asked : Model
        What the caller and the site state; the rest is unknown.
    base : Placement

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.predict.job import Job
    >>> from rankmap.predict.model import Model
    >>> m = nidmap.load_machine("torus:4x4,bw=1,latency=0")
    >>> asked = Model(m, Job("alltoall", 1, 1e9, "at-once"))
    >>> gains = Gains(asked, asked.place(np.arange(4)))
    >>> found = gains.of(asked.place(np.array([0, 1, 4, 5])))
    >>> found.range_text, found.unknowns
    ('1.5 x', ())
    """

    def __init__(self, asked: Model, base: Placement) -> None:
        self.asked = asked
        self._base = _Times(asked, base)

    def of(self, plan: Placement) -> Gain:
        """Return how many times as fast a placement is; the baseline itself, for certain, once."""
        if _same_placement(plan, self._base.placement):
            return Gain(1.0, 1.0, 1.0)
        return _range_of_unknowns(self.asked, [_Times(self.asked, plan), self._base])


def _same_placement(plan: Placement, base: Placement) -> bool:
    """Return whether the same ranks are on the same nodes, as the caller lists them."""
    if plan.order is None and base.order is None:
        return np.array_equal(plan.rows, base.rows)
    same = np.array_equal(plan.slot_of_rank, base.slot_of_rank)
    return same and np.array_equal(plan.rows, base.rows)


def time_range(asked: Model, plan: Placement) -> Gain:
    """Return the seconds of a placement as a range over all that is not known.

    Returns
    -------
    Gain
        Its figures are seconds.
    """
    return _range_of_unknowns(asked, [_Times(asked, plan)])


def _range_of_unknowns(model: Model, times: list[_Times]) -> Gain:
    """Return one placement's time, or its gain over a second placement, as a range."""

    def under(values: _Values) -> float:
        step()
        plan, *base = (
            timed.seconds(values, place) + values.rest for place, timed in enumerate(times)
        )
        if not base:
            return plan
        return base[0] / plan if plan > 0 else math.inf if base[0] > 0 else 1.0

    first, communicates = _likely(model), 1.0
    if len(times) > 1 and (recording := _recording(model)) is not None:
        recorded_s = recording.seconds * model.size / (model.constants.slowed or 1.0)
        base_s = times[1].seconds(first, 1)
        if recorded_s > base_s:
            first = first._replace(rest=recorded_s - base_s)
            communicates = min(1.0, _range_of_unknowns(model, times[1:]).high / recorded_s)
    likely = under(first)
    if not 0 < likely < math.inf:
        return Gain(likely, likely, likely)
    unknowns, lowest, highest = [], first, first
    for name, question, others in _unknowns(model, first, times):
        outcomes = sorted(
            ((under(first._replace(**other.changes)), other) for other in others),
            key=itemgetter(0),
        )
        if not 0 < outcomes[0][0] <= outcomes[-1][0] < math.inf:
            continue
        (low, down), (high, up) = outcomes[0], outcomes[-1]
        lowest = lowest._replace(**(down.changes if low < likely else {}))
        highest = highest._replace(**(up.changes if high > likely else {}))
        if max(high, likely) > min(low, likely) * (1 + SAME):
            at = down.words if low < likely else ""
            unknowns.append(Unknown(name, question, min(low, likely), max(high, likely), at))
    unknowns.sort(key=lambda unknown: -unknown.high / unknown.low)
    low = likely / math.exp(math.hypot(*(math.log(likely / unknown.low) for unknown in unknowns)))
    high = likely * math.exp(math.hypot(*(math.log(unknown.high / likely) for unknown in unknowns)))
    together = [under(lowest), under(highest), *(unknown.low for unknown in unknowns), likely]
    together += [unknown.high for unknown in unknowns]
    low, high = max(low, min(together)), min(high, max(together))
    return Gain(low, likely, high, tuple(unknowns), communicates)


def _likely(model: Model) -> _Values:
    """Return the likely value of every unknown: what is stated where something is."""
    figures = model.constants
    return _Values(
        bias=None,
        algorithm=model.algorithm,
        process=figures.process_gbs,
        payload=figures.payload,
        memory=figures.memory_gbs,
        eager=figures.eager_bytes,
    )


def _recording(model: Model) -> Recording | None:
    """Return the recording whose run's seconds are comparable with the model's; None for none."""
    known = model.pattern.known if isinstance(model.pattern, Graph) else {}
    recording: Recording | None = known.get(RECORDING)
    whole = recording is not None and not recording.window
    return recording if whole and model.constants.slowed is not None else None


def _biases(model: Model) -> list[_Other]:
    """Return other biases of routers towards detours; none where the routing is known."""
    topology = model.machine.topology
    best = _Other({"bias": 1.0}, "routers divide bytes as well as can be")
    if model.routing == "adaptive":
        return [best, _Other({"bias": largest_bias(model.machine)}, "routers hardly detour")]
    several = topology.parameters.get("routings", ())
    applies = "adaptive" in (several or routings(model.machine))
    unsaid = not model.routing_stated and (several or topology.fabric == "infiniband")
    return [best] if applies and unsaid else []


def _unknowns(
    model: Model, first: _Values, times: list[_Times]
) -> Iterator[tuple[str, str, list[_Other]]]:
    """Yield each unknown: its name, the question, and its other values."""
    if biases := _biases(model):
        yield "routing", "how well routers divert packets around full links", biases
    yield from _libraries(model, first)
    if not model.process_stated:
        slow = first.process or _slow_rank(model)
        question = f"bandwidth of one rank, {slow:g} GB/s or more"
        other = _Other({"process": None}, "ranks send as fast as their node")
        if not first.process:
            other = _Other({"process": slow}, f"a rank sends {slow:g} GB/s")
        yield "process", question, [other]
    if not model.payload_stated:
        question = f"payload of the links, all of the wire or {ARIES_PAYLOAD:.0%}"
        words = f"{ARIES_PAYLOAD:.0%} of the wire is payload"
        yield "payload", question, [_Other(_less_payload(model), words)]
    if not model.background and all(timed.others is not None for timed in times):
        question = f"traffic of other jobs, none or {USUAL_LOAD:g} GB/s a busy node"
        words = f"other jobs send {USUAL_LOAD:g} GB/s a busy node"
        yield "others", question, [_Other({"others": True}, words)]
    if all(timed.staging for timed in times):
        question = "halo exchange, all at once or direction by direction (stencil:…,staged)"
        words = "the halo is exchanged direction by direction"
        yield "staging", question, [_Other({"staged": True}, words)]
    if any(timed.stepwise for timed in times):
        end = 1 / math.sqrt(len(times))  # of independent placements, one up and one down
        words = "ranks run ahead of others another way"
        overlaps = [_Other({"overlap": ends}, words) for ends in ((end, -end), (-end, end))]
        yield "overlap", "how far ranks run ahead of others from step to step", overlaps
    if model.constants.eager is None and any(timed.eager for timed in times):
        question = f"eager sends, none or up to {EAGER / 1024:g} KiB"
        yield (
            "eager",
            question,
            [
                _Other({"eager": 0.0}, "sends wait for their receivers"),
                _Other({"eager": EAGER}, "sends do not wait for their receivers"),
            ],
        )
    yield from _rest(model, first)
    gbs, stated = model.constants.memory_gbs, model.constants.memory_source != "assumed"
    if gbs is not None and not stated and any(timed.inside for timed in times):
        question = f"intra-node bandwidth, {gbs:g} GB/s assumed"
        span = max(OLD_NODE, gbs / 2), max(NODE_OF_TODAY, 2 * gbs)
        words = "the ranks of a node copy {:g} GB/s together"
        yield "memory", question, [_Other({"memory": gbs}, words.format(gbs)) for gbs in span]


def _slow_rank(model: Model) -> float:
    """Return GB/s of one rank that is slow, where nothing states any."""
    figures = model.machine.topology.bandwidth
    interface = figures.get("injection", figures.get("up0", math.inf))
    share = known_fabric(model.machine.topology).rank_share
    return max(SLOW_RANK, share * interface) if interface < math.inf else SLOW_RANK


def _less_payload(model: Model) -> dict[str, Any]:
    """Return a smaller payload of links, and a bias to detours that keeps what was measured."""
    bias = max(1.0, usual_bias(model.machine) * ARIES_PAYLOAD)
    return {"payload": ARIES_PAYLOAD} | ({"bias": bias} if model.routing == "adaptive" else {})


def _libraries(model: Model, first: _Values) -> Iterator[tuple[str, str, list[_Other]]]:
    """Yield the algorithm of an all-to-all or a collective, unknown where a library chooses it."""
    if first.algorithm != "library":
        return
    question = "algorithm of the all-to-all, posted at once or in steps"
    names = [ALGORITHMS[0] if model.mpi else "pairwise"]
    if isinstance(model.pattern, Collective):
        names = list(dict.fromkeys(USUAL[model.pattern.name][:2]))
        question = f"algorithm of the collective, {' or '.join(names)}"
        if model.mpi:  # its library's own choice is known
            return
    others = [_Other({"algorithm": name}, f"the library goes by {name}") for name in names]
    yield "algorithm", question, others


def _rest(model: Model, first: _Values) -> Iterator[tuple[str, str, list[_Other]]]:
    """Yield what a recorded run does beside communication, where that takes any time.

    It may be gone on another machine than the one that it was recorded on.
    """
    recording = _recording(model)
    if not first.rest or recording is None:
        return
    least = first.rest / 2 if recording.ran_on(model.machine) else 0.0
    less = _Other({"rest": least}, "the run does less beside communication")
    more = _Other({"rest": first.rest * 2}, "the run does more beside communication")
    question = f"what the run does beside communication, {time_text(first.rest)} as recorded"
    yield "rest", question, [less, more]


class _Times:
    """Seconds of one placement under any values of the unknowns.

    Attributes
    ----------
    others : float64 (c,) or None
        What the busy nodes that belong to no known job leave of every channel, GB/s.
    inside : bool
        Whether anything is sent inside a node.
    staging : bool
        Whether the pattern could be sent direction by direction, which nothing says.
    stepwise : bool
        Whether anything is sent in steps that no barrier parts.
    eager : bool
        Whether ranks that are followed have messages that may be sent eagerly.
    """

    def __init__(self, model: Model, placement: Placement) -> None:
        self.model, self.placement = model, placement
        self.pattern = fit_pattern(model.pattern, placement)
        self.histogram = model.histogram(placement)
        self._phases: dict[tuple[str, bool, float | None], list[_PhaseTimes]] = {}
        self._kept: dict[tuple[float, ...], float] = {}  # few unknowns change the wire
        left = model.left(placement)
        usable = (model.channels if left is None else left).bandwidth
        self.wire = usable / model.constants.payload
        self.others = self._beside_others()
        least = self.wire if self.others is None else self.others
        self.least_channels = replace(model.channels, bandwidth=np.minimum(usable, least))
        phases = self.phases(model.algorithm)
        self.inside = any(phase.inside for phase in phases)
        self.stepwise = any(phase.steps and not phase.dependent for phase in phases)
        self.eager = any(
            phase.course is not None and phase.course.smallest <= EAGER for phase in phases
        )
        self.staging = isinstance(self.pattern, Stencil) and not self.pattern.staged

    def _beside_others(self) -> Floats | None:
        machine = self.model.machine
        busy = machine.compute & ~machine.free
        busy[self.placement.rows] = False
        if busy.sum() < 2:
            return None
        job = self.model.job_on(np.flatnonzero(busy))
        return shared_channels(machine, [job], self.model.routing).left(self.wire)

    def phases(
        self, algorithm: str, staged: bool = False, bias: float | None = None
    ) -> list[_PhaseTimes]:
        """Return what is sent under an algorithm, and the links that it takes."""
        key = algorithm, staged, bias
        if key not in self._phases:
            model = copy(self.model)
            model.algorithm = algorithm
            pattern = self.pattern
            if staged and isinstance(pattern, Stencil):
                pattern = replace(pattern, staged=True)
            phases = model.phases(self.placement, pattern)
            self._phases[key] = [self._phase(model, phase, bias) for phase in phases]
        return self._phases[key]

    def _phase(self, model: Model, phase: Phase, bias: float | None) -> _PhaseTimes:
        loads = model.loads(phase.total, self.least_channels, bias)
        _, *fixed = model.beyond(phase, loads, math.inf)
        steps = [] if phase.steps is None else self._steps(model, phase, bias)
        return _PhaseTimes(
            self._sent(loads, 1.0, phase.sent),
            tuple(self._sent(step.loads, step.times, step.message) for step in steps),
            phase.inside,
            sum(fixed),
            phase.dependent,
            model.course(phase),
        )

    def _steps(self, model: Model, phase: Phase, bias: float | None) -> Iterable[StepLoads]:
        """Return the steps of a phase that are looked at.

        Of a large job, whose steps take long, these are some where they are not sent as is likely;
        of other biases they stand for so many that with the likely bias they take as long as all.
        """
        channels, large = self.least_channels, len(self.placement.rows) > LARGE
        most = SOME_STEPS if large and model.algorithm != self.model.algorithm else None
        if bias is None or not large:
            return model.step_loads(phase, channels, bias, most)
        every_s = model.in_steps(phase, channels, most=most)
        some_s = model.in_steps(phase, channels, most=SOME_STEPS)
        longer = every_s / some_s if some_s else 1.0
        some = model.step_loads(phase, channels, bias, SOME_STEPS)
        return (step._replace(times=step.times * longer) for step in some)

    def _sent(self, loads: Loads, times: float, message: float) -> _SentAtOnce:
        used = np.flatnonzero(loads.load)
        node_links = np.maximum(loads.injection, loads.ejection) / (self.model.injection * GB)
        node_link_s = float(node_links.max(initial=0.0))
        return _SentAtOnce(times, used, loads.load[used], node_link_s, message)

    def seconds(self, values: _Values, place: int) -> float:
        """Return the seconds under some values of the unknowns, as the `place`-th placement."""
        overlap = values.overlap[place]
        wire = self.others if values.others and self.others is not None else self.wire
        total = self.histogram
        for phase in self.phases(values.algorithm, values.staged, values.bias):
            moved = self._moved(phase, values, wire, overlap)
            if values.memory:
                moved = max(moved, phase.inside / (values.memory * GB))
            total += moved + phase.fixed
        return total

    def _moved(self, phase: _PhaseTimes, values: _Values, wire: Floats, overlap: float) -> float:
        """Return the seconds in which the network moves a phase's bytes."""
        step_s = [self._longest(sent, values, wire) for sent in phase.steps]
        steps = sum(sent.times * seconds for sent, seconds in zip(phase.steps, step_s, strict=True))
        together_s = least = self._longest(phase.together, values, wire)
        if phase.course is not None:
            followed = self._followed(phase.course, values, wire)
            if phase.steps:
                steps = followed
            else:
                together_s = followed
            if phase.course.head:  # ranks that are ahead have done a part of it by then
                least = phase.together.message / (values.process * GB) if values.process else 0.0
        if not phase.steps:
            return max(together_s, least)
        if phase.dependent:
            return max(steps, least)
        won = AHEAD * max(0.0, steps - together_s)
        return max(steps - overlap * (won if overlap > 0 else max(won, *step_s)), least)

    def _followed(self, course: Course, values: _Values, wire: Floats) -> float:
        """Return the seconds that ranks take through a phase, followed message by message."""
        key = id(course), id(wire), values.payload, values.eager
        if key not in self._kept:
            links = self.model.every_link(wire * values.payload)
            self._kept[key] = course.seconds(links, values.eager)
        return self._kept[key]

    def _busiest(self, sent: _SentAtOnce, values: _Values, wire: Floats) -> float:
        """Return the seconds of the busiest link."""
        key = id(sent), id(wire), values.payload
        if key not in self._kept:
            bandwidth = wire[sent.channels] * (values.payload * GB)
            self._kept[key] = float((sent.load / bandwidth).max(initial=0.0))
        return self._kept[key]

    def _longest(self, sent: _SentAtOnce, values: _Values, wire: Floats) -> float:
        """Return what takes longest: links, a node's own link, or what a rank can send."""
        links = self._busiest(sent, values, wire)
        rank = sent.message / (values.process * GB) if values.process else 0.0
        return max(links, sent.node_link_s, rank)
