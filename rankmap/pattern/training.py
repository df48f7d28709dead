# SPDX-License-Identifier: Apache-2.0
"""Training of large models: who talks to whom, and the bytes along each axis of parallelism.

Tensor (tp), context (cp), expert (ep), data (dp) and pipeline parallelism (pp):

``training:tp=8,cp=1,dp=16,pp=4[,ep=8][,etp=1][,order=tp-cp-ep-dp-pp][,hidden=4096 …]``

*Numbering* is Megatron-LM's (equal to its own generator in 2,727 parameter
cases): in the order tp-cp-ep-dp-pp, leftmost fastest, a rank is
tp + TP*(cp + CP*(dp + DP*pp)). Experts do not multiply the ranks: on their
side a rank is etp + ETP*(ep + EP*(edp + EDP*pp)).

*Bytes a rank sends in one iteration*, with a bytes per element, S = a*s*b*h/cp,
f(n) = (n-1)/n, m microbatches and L layers of a stage:

=========  ====================================================  ==================
axis       bytes                                                 checked on
=========  ====================================================  ==================
tp         8*f(tp)*S*L*m, 10 with sequence parallelism           SC21 paper for 8
cp         3*(cp-1)*K*L*m, K = 2*a*(s/cp)*b*n_kv*d/tp            code paths only
ep         4*f(ep)*T*k*h*a*L'*m, T = s*b/(cp*tp), L' MoE layers  code paths only
dp (x cp)  f(dp*cp)*N*(g+2), N parameters of a rank              code paths only
pp         S*m an edge a direction, S/tp with sequence parallel  SC21 paper for S
=========  ====================================================  ==================

Collectives run as rings in rank order, as NCCL builds them, all-to-all of
experts directly, pipeline stages in a chain. An edge's weight is the mean of
its two directions, so a ring of more than two ranks, which sends one way,
counts with half of what a rank sends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.placement import MOST_RANKS
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.placement.support.arrays import connected_components
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import Pattern, parse_options, parse_whole, pattern
from nidmap.rankmap.pattern.structured import GridPattern, WeightedOffset

DEFAULT_ORDER = ("tp", "cp", "ep", "dp", "pp")

#: Axes that send something, and the tokens of the order that each spans.
AXES = {"tp": ("tp",), "cp": ("cp",), "dp": ("cp", "dp"), "pp": ("pp",), "ep": ("ep",)}


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The model and the batch; the defaults describe a dense model of 8e9 parameters."""

    # layers, hidden, seq, batch, microbatches: L of the whole model, h, s, b (sequences a
    # microbatch) and m
    layers: int = 32
    hidden: int = 4096
    seq: int = 8192
    batch: int = 1
    microbatches: int = 8
    # kv, head: key/value heads n_kv and their dimension d
    kv: int = 8
    head: int = 128
    params: float = 0.0  # parameters of the whole model N; 0: 12*L*h^2, the rule of thumb
    # moe, topk: MoE layers of the whole model (0: all where there are experts) and experts
    # per token k
    moe: int = 0
    topk: int = 2
    # bytes, grad: bytes an element (2 for bf16) and a gradient (4 or 2)
    bytes: int = 2
    grad: int = 4
    sp: int = 1  # 1 with sequence parallelism, 0 without


@dataclass(frozen=True, slots=True)
class Training(Pattern):
    """A training job's ranks and traffic."""

    # tp, cp, pp, ep, etp: tensor, context, pipeline, expert and expert-tensor parallelism
    tp: int = 1
    cp: int = 1
    dp: int | None = 1  # data parallelism; None means as many as the ranks make
    pp: int = 1
    ep: int = 1
    etp: int = 1
    order: tuple[str, ...] = DEFAULT_ORDER  # fastest first; ``ep`` counts on the experts' side only
    sizes: ModelSizes = field(default_factory=ModelSizes)
    given: tuple[tuple[str, str], ...] = ()  # sizes that were stated, for the spec

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        parts = [f"tp={self.tp}", f"cp={self.cp}", f"dp={self.dp}", f"pp={self.pp}"]
        parts = [part for part in parts if part != "dp=None"]
        if self.ep > 1 or self.etp != self.tp:
            parts += [f"ep={self.ep}", f"etp={self.etp}"]
        if self.order != DEFAULT_ORDER:
            parts.append("order=" + "-".join(self.order))
        return "training:" + ",".join([*parts, *(f"{k}={v}" for k, v in self.given)])

    @property
    def ranks(self) -> int | None:
        """TP*CP*DP*PP; None if dp is left open."""
        return None if self.dp is None else self.tp * self.cp * self.dp * self.pp

    @property
    def dims(self) -> Shape | None:
        """Extents of the four axes, the slowest first."""
        if self.dp is None:
            return None
        return tuple(self._dense()[name] for name in reversed(self.order) if name != "ep")

    def resized(self, ranks: int) -> Pattern:
        """Return this job with as much data parallelism as the ranks allow."""
        unit = self.tp * self.cp * self.pp
        if ranks % unit:
            raise UsageError(f"pattern {self.spec}: {ranks} ranks are not a multiple of {unit}")
        return _check_job(replace(self, dp=ranks // unit))

    def groups(self, axis: str) -> Ints:
        """Return the ranks of every group of an axis, int64 (groups, members).

        `axis`: ``tp``, ``cp``, ``dp``, ``pp``, several joined as in ``dp-cp``, or on the experts'
        side ``ep``, ``edp``, ``etp``.
        """
        expert = {"ep": "ep", "edp": "dp", "etp": "tp"}
        if axis in expert:
            edp = self.known_ranks() // (self.pp * self.etp * self.ep)
            extents = {"tp": self.etp, "cp": 1, "ep": self.ep, "dp": edp, "pp": self.pp}
            return self._groups_along([expert[axis]], extents)
        names = axis.split("-")
        if not set(names) <= {"tp", "cp", "dp", "pp"}:
            raise UsageError(f"training: unknown axis '{printable(axis, 30)}'")
        return self._groups_along(names, self._dense())

    def replicas(self, axes: Sequence[str] = ("tp", "ep", "pp")) -> Ints:
        """Return each rank's replica number, int64 (ranks,), for axes that join its ranks."""
        groups = [self.groups(axis) for axis in axes]
        first = np.concatenate([np.repeat(g[:, 0], g.shape[1]) for g in groups])
        members = np.concatenate([g.ravel() for g in groups])
        return np.asarray(connected_components(self.known_ranks(), first, members))

    def sent(self) -> dict[str, float]:
        """Return the bytes that a rank sends along each axis in one iteration.

        ``pp``: along one edge in one direction. Axes of one rank send none.
        """
        z = self.sizes
        layers, moe = self._layers_of_stage()
        s = z.bytes * z.seq * z.batch * z.hidden / self.cp
        k = 2 * z.bytes * (z.seq / self.cp) * z.batch * z.kv * z.head / self.tp
        tokens = z.seq * z.batch / (self.cp * self.tp)
        held = (z.params or 12.0 * z.layers * z.hidden**2) / (self.tp * self.pp)
        return {
            "tp": (10 if z.sp else 8) * _ring_share(self.tp) * s * layers,
            "cp": 3 * (self.cp - 1) * k * layers,
            "ep": 4 * _ring_share(self.ep) * tokens * z.topk * z.hidden * z.bytes * moe,
            "dp": _ring_share((self.dp or 1) * self.cp) * held * (z.grad + 2),
            "pp": s / (self.tp if z.sp else 1) * z.microbatches if self.pp > 1 else 0.0,
        }

    def in_turn(self) -> dict[str, float]:
        """Return how many messages of a rank depend on each other along each axis."""
        layers, moe = self._layers_of_stage()
        return {
            "tp": (10 if self.sizes.sp else 8) * (self.tp - 1) * layers,
            "cp": 3 * (self.cp - 1) * layers,
            "ep": 4 * moe,
            "dp": 2.0 * ((self.dp or 1) * self.cp - 1),
            "pp": 2.0 * (self.sizes.microbatches + self.pp - 2),
        }

    def sending_groups(self) -> Iterator[tuple[str, float, Ints]]:
        """Yield the axes with traffic: name, bytes per rank, and ranks of each group."""
        for axis, size in self.sent().items():
            if size:
                yield axis, size, self.groups("dp-cp" if axis == "dp" else axis)

    def edges(self, block: int = 1 << 20) -> Iterator[Traffic]:
        """Yield the edges of every axis; see `Pattern.edges`. A pair may occur on several axes."""
        for axis, size, groups in self.sending_groups():
            rows = max(1, block // groups.shape[1])  # about this many ranks at a time
            for part in np.split(groups, range(rows, len(groups), rows)):
                if axis == "ep":
                    a, b = np.triu_indices(part.shape[1], 1)
                    ends, weight = (part[:, a], part[:, b]), size / (self.ep - 1)
                elif axis == "pp" or part.shape[1] == 2:
                    ends, weight = (part[:, :-1], part[:, 1:]), size
                else:
                    ends, weight = (part, np.roll(part, -1, axis=1)), size / 2
                yield Traffic.undirected(ends[0].ravel(), ends[1].ravel(), weight)

    @property
    def model(self) -> GridPattern:
        """A similar pattern on the grid of the four axes, without experts."""
        sent, dims = self.sent(), self.dims or ()
        axes = [name for name in reversed(self.order) if name != "ep"]
        rings = tuple(extent > 2 and name != "pp" for name, extent in zip(axes, dims, strict=True))
        weights = (sent[name] / (2 if ring else 1) for name, ring in zip(axes, rings, strict=True))
        return _Rings(dims, rings, tuple(weights))

    def _layers_of_stage(self) -> tuple[float, float]:
        """Return the layers of a stage over all microbatches, and those with experts."""
        z = self.sizes
        return z.layers / self.pp * z.microbatches, (z.moe or z.layers) / self.pp * z.microbatches

    def _dense(self) -> dict[str, int]:
        dp = self.known_ranks() // (self.tp * self.cp * self.pp)
        return {"tp": self.tp, "cp": self.cp, "ep": 1, "dp": dp, "pp": self.pp}

    def _groups_along(self, names: Sequence[str], extents: Mapping[str, int]) -> Ints:
        axes = list(reversed(self.order))
        table = np.arange(math.prod(extents.values())).reshape([extents[name] for name in axes])
        # The slowest of the named axes first: a group's ranks ascend.
        inner = [k for k, name in enumerate(axes) if name in names]
        outer = [k for k in range(len(axes)) if k not in inner]
        members = math.prod(extents[axes[k]] for k in inner)
        return np.asarray(table.transpose(outer + inner).reshape(-1, members))


@dataclass(frozen=True, slots=True)
class _Rings(GridPattern):
    """A ring or a chain along every line of a grid, with one weight per dimension."""

    dims: Shape
    rings: tuple[bool, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def spec(self) -> str:
        """The text of the pattern."""
        return "training"

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether each dimension's lines are rings."""
        return self.rings

    def offsets(self) -> Iterator[WeightedOffset]:
        """Yield the offset along each dimension that has traffic."""
        for k, (extent, weight) in enumerate(zip(self.dims, self.weights, strict=True)):
            if extent > 1 and weight:
                yield tuple(int(k == j) for j in range(len(self.dims))), weight


def _ring_share(n: int) -> float:
    return (n - 1) / n


@pattern("training")
def training(text: str) -> Pattern:
    """Build ``training:tp=8,cp=1,dp=16,pp=4[,ep=8][,order=…][,hidden=4096 …]``."""
    examples = {**dict.fromkeys((*DEFAULT_ORDER, "etp"), "8"), "order": "-".join(DEFAULT_ORDER)}
    examples |= {field.name: f"{field.default:g}" for field in fields(ModelSizes)}
    options = parse_options("training", text, examples)
    if not options:
        raise UsageError("training: no sizes given", "write training:tp=8,dp=16,pp=4")
    stated = [axis for axis in DEFAULT_ORDER if axis in options]
    axes = {axis: parse_whole("training", axis, options.pop(axis), least=1) for axis in stated}
    dp = axes.pop("dp", None)
    etp = parse_whole("training", "etp", options.pop("etp", str(axes.get("tp", 1))), least=1)
    order = _axis_order(options.pop("order", "-".join(DEFAULT_ORDER)))
    sizes = ModelSizes(**{key: _parse_size(key, value) for key, value in options.items()})
    given = tuple(sorted(options.items()))
    pattern = Training(**axes, dp=dp, etp=etp, order=order, sizes=sizes, given=given)
    return pattern if pattern.dp is None else _check_job(pattern)


def _parse_size(key: str, text: str) -> int:
    """Parse a size of the model; parameters may be written as 8e9."""
    if key == "params":
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 1 <= value < 1e18:
            what = f"training: params={printable(text, 30)} is not a number of parameters"
            raise UsageError(what)
        return int(value)
    size = parse_whole("training", key, text, least=int(key not in ("sp", "moe")))
    if key == "sp" and size > 1:
        raise UsageError(f"training: sp={size} is neither 0 nor 1")
    return size


def _axis_order(text: str) -> tuple[str, ...]:
    names = tuple(text.split("-"))
    if sorted((*names, "ep") if "ep" not in names else names) != sorted(DEFAULT_ORDER):
        raise UsageError(
            f"training: order={printable(text, 40)} must name tp, cp, dp, pp (and ep) once each",
            "as in tp-cp-ep-dp-pp, the fastest first",
        )
    return names if "ep" in names else (names[0], "ep", *names[1:])


def _check_job(job: Training) -> Training:
    """Refuse a job whose numbers are inconsistent."""
    ranks, dp, experts = job.ranks or 0, job.dp or 1, job.etp * job.ep
    if ranks > MOST_RANKS:
        raise UsageError(f"{job.spec}: more ranks than any machine has")
    edp, left = divmod(ranks // job.pp, experts)
    if left:
        raise UsageError(
            f"{job.spec}: tp*cp*dp = {ranks // job.pp} is not divisible by etp*ep = {experts}"
        )
    if job.order[-1] != "pp" and job.pp > 1 and job.ep > 1 and edp != dp:
        raise UsageError(
            f"{job.spec}: pp must be last in order= where experts are data-parallel"
            f" {edp} ways and the rest {dp}",
            "as in Megatron-LM",
        )
    return job
