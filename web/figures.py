# SPDX-License-Identifier: Apache-2.0
"""The figures that the page shows, computed by the functions of the command line.

Each takes the machine, the nodes that plans may choose from and a request, and returns
what JSON takes; they run in processes of their own (`nidmap.web.workers`), where a
long one can be ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nidmap.placement.commands.plan_report import plan_document
from nidmap.placement.dumps.assemble import UNLISTED
from nidmap.placement.errors import NidmapError, PlanError, UsageError, printable
from nidmap.placement.lookup import nodes_of, rows_of
from nidmap.placement.network import channels, routings
from nidmap.placement.network import hops as count
from nidmap.placement.network.rails import rails_of
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.placement import Origin, Placement
from nidmap.placement.plan import choose_nodes, usual_strategy
from nidmap.placement.planners import PREDICTING, Baseline, Moment, Request, spans
from nidmap.placement.scheduler.baseline import baseline_of, scheduler_choice
from nidmap.placement.scheduler.kinds import offered
from nidmap.placement.specs import parse_spec
from nidmap.placement.support.arrays import each_once
from nidmap.placement.support.quantities import counted, time_text
from nidmap.rankmap import orders
from nidmap.rankmap.compare import compare_strategies
from nidmap.rankmap.emit import emit, find
from nidmap.rankmap.emit.document import document
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import parse_counts
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains, time_range
from nidmap.rankmap.search.auto_order import order_by_strategy
from nidmap.rankmap.search.cost import without_time
from nidmap.rankmap.search.rank_orders import compile_first
from nidmap.web import link_loads, replies, requests
from nidmap.web.columns import FILE_PATTERNS, folded_rows
from nidmap.web.workers import report_progress

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints, Mask
    from nidmap.web.snapshot import Offer


#: Ranks that a page may ask for.
MOST_RANKS = 1 << 20

#: Edges of a pattern that are sent to a page.
_MOST_EDGES = 1_000_000

#: The share of a comparison's time that its search takes, about; then its rows are predicted.
_SEARCHING = 0.7

#: The order of ranks that changes nothing.
_AS_IS = ("", "row-major")


def takes_long(wanted: msgspec.Struct) -> bool:
    """Tell whether a question may take seconds, so that quick ones need not queue behind it."""
    match wanted:
        case requests.Plan():
            return _wanted_strategy(wanted) in PREDICTING
        case requests.Describe(slots=[], order=name) | requests.Order(slots=[], strategy=name):
            return name not in _AS_IS
        case _:
            return isinstance(wanted, requests.Compare)


def maps_graphs(wanted: msgspec.Struct) -> bool:
    """Tell whether a question needs search kernels that may have to be compiled first."""
    match wanted:
        case requests.Plan():
            searches = _wanted_strategy(wanted) in PREDICTING
        case requests.Compare(strategies=names):
            searches = not names or any(name in PREDICTING for name in names)
        case _:
            return False
    try:
        return searches and parse_pattern(safe_pattern(wanted.pattern) or "alltoall").dims is None
    except NidmapError:  # the question itself reports the fault
        return False


def compile_kernels(machine: Machine) -> None:
    """Compile the kernels of searches before a question's clock starts."""
    del machine
    ring = parse_spec("torus:2x2")
    model = Predictor(ring, Job("alltoall"))
    compile_first(model, model.place(np.arange(len(ring))))


# --- describe -------------------------------------------------------------------------


def describe(machine: Machine, offer: Offer, wanted: requests.Describe) -> replies.Described:
    """Describe a set of nodes: the sentence, what it touches, and the loads of its links."""
    rows = each_once(rows_of(machine, wanted.nodes, repeats=True))
    answer = replies.Described(
        "nidmap.describe/1", len(rows), spans(machine, rows), nodes_of(machine, rows).fold()
    )
    answer.sentence = _count_sentence(machine, answer)
    try:
        model = Predictor(machine, _wanted_job(wanted, len(rows)))
        order = _wanted_order(model, model.place(rows), wanted)
        placement = model.place(rows, None if order is None else order.slot_of_rank)
        prediction = model.ranged(placement, "" if order is None else order.origin.strategy)
        answer.prediction = link_loads.document(prediction, wanted.links)
        answer.timeless = without_time(placement)
        if wanted.groups:
            answer.prediction.groups = link_loads.group_links(prediction.loads)
        answer.notes = list(prediction.notes)
        answer.default = _default_choice(
            model,
            offered(machine, offer.candidates, placement.rows, wanted.kind),
            placement,
            prediction.time_s,
            offer.baseline,
        )
        answer.sentence = sentence(machine, answer, link_loads.busiest_channel(prediction))
    except NidmapError as error:
        answer.reason = str(error)
    return answer


def _wanted_order(
    model: Predictor, placement: Placement, wanted: requests.Describe
) -> Placement | None:
    """Return the requested order; None for the default order of all launchers."""
    if wanted.slots:
        return placement.with_order(np.array(wanted.slots), Origin(wanted.order, wanted.pattern))
    if wanted.order in _AS_IS:
        return None
    return order_by_strategy(placement, model.job, _order_name(wanted.order))


def _default_choice(
    model: Predictor, usable: Mask, placement: Placement, time: float, named: Baseline | str
) -> replies.SchedulersChoice | None:
    """Return the scheduler's choice of usable nodes, and the job's time on it."""
    machine = model.machine
    baseline = baseline_of(machine, named) if isinstance(named, str) else named
    try:
        rows = scheduler_choice(machine, Request(len(placement.rows), usable, baseline=baseline))
    except PlanError:
        return None
    usual = model.place(rows)
    other = model.time(usual)
    return replies.SchedulersChoice(
        strategy=baseline.strategy,
        words=baseline.words,
        gain=Gains(model, usual).of(placement).document(),
        time_s=other,
        between=time_range(model, usual).document(),
        ratio=other / time if time else 1.0,
        touches=spans(machine, rows),
        nodelist=nodes_of(machine, rows).fold(),
        rows=rows.tolist(),
    )


def sentence(
    machine: Machine, said: replies.Described, busiest: tuple[str, str, float] | None
) -> str:
    """Return the caption of a picture of nodes whose prediction is known."""
    assert said.prediction is not None
    parts = [_count_sentence(machine, said)]
    if busiest is None:
        parts.append("no traffic leaves a router")
    else:
        kind, ends, ratio = busiest
        parts.append(f"busiest: {kind} link {ends} at {ratio:.1f} x the mean")
    parts.append(f"no time: {said.timeless}" if said.timeless else _ranged_time(said.prediction))
    if said.default is not None:
        gain = Gain(*(said.default.gain[end] for end in ("low", "likely", "high")))
        times = "" if gain.range_text == "1 x" else f"{gain.range_text.removesuffix(' x')} times "
        parts.append(f"{gain.untold if times else ''}{times}as fast as {said.default.words}")
    return "; ".join(parts)


def _ranged_time(predicted: replies.Prediction) -> str:
    """Return a time with its range and its terms."""
    between = predicted.between or {"low": predicted.time_s, "high": predicted.time_s}
    low, likely, high = map(time_text, (between["low"], predicted.time_s, between["high"]))
    range_text = "" if low == high else f" ({low} to {high})"
    return f"{likely}{range_text}: {predicted.limited_by_text}"


def _count_sentence(machine: Machine, answer: replies.Described) -> str:
    """Return the nodes and what they touch at the outermost and the innermost level."""
    touches = answer.touches
    ends = dict.fromkeys([*list(touches)[:1], *list(touches)[-1:]])
    words = ", ".join(_grouped(touches[level], level) for level in ends)
    where = "on" if machine.topology.kind == "torus" else "in"
    return _grouped(answer.count, "node") + (f" {where} {words}" if words else "")


def _grouped(number: int, noun: str) -> str:
    """Format a number with digit groups and its noun, as everywhere on the page."""
    return f"{number:,} {counted(number, noun).partition(' ')[2]}"


# --- compare, plan, order, hops -------------------------------------------------------


def compare(machine: Machine, offer: Offer, wanted: requests.Compare) -> dict[str, Any]:
    """Compare plans, as ``nidmap compare`` does, each with its nodes and links.

    A row whose nodes were chosen together with an order of the ranks has it as
    ``own_order``: the slot of every rank (None where rank r is on slot r), and
    the time without it.
    """
    model = Predictor(machine, _wanted_job(wanted, wanted.count))
    comparison = compare_strategies(
        model,
        _node_request(machine, offer, wanted),
        wanted.strategies,
        [_order_name(order) for order in wanted.orders],
        told=_report_row,
        progress=_report_part,
    )
    timeless = without_time(model.place(comparison.default.plan.rows))
    answer = comparison.document() | {"schema": "nidmap.page-compare/2", "timeless": timeless}
    answer["notes"] += offer.notes
    for row, entry in zip(answer["rows"], comparison.entries, strict=True):
        row["node_rows"] = entry.plan.rows.tolist()
        row["own_order"] = entry.plan.facts["predicted"].get("order")
        drawn = link_loads.document(entry.found, wanted.links)
        row |= {"links": drawn.links, "routers": drawn.routers, "matrix": drawn.matrix}
    return answer


def plan(machine: Machine, offer: Offer, wanted: requests.Plan) -> dict[str, Any]:
    """Choose nodes: the document that ``nidmap plan --json`` prints."""
    strategy, job = _wanted_strategy(wanted), None
    if strategy in PREDICTING:
        job = _wanted_job(wanted, wanted.count)
    nodes = _node_request(machine, offer, wanted)
    nodes = replace(nodes, include=_named_rows(machine, wanted.include))
    chosen = choose_nodes(machine, nodes, strategy, job, progress=_report_search)
    answer = plan_document(machine, chosen, wanted.seed)
    answer["warnings"] += offer.notes
    return answer


def _report_row(done: float, text: str) -> None:
    """Report which row of a comparison is being computed, after its search."""
    share = round(_SEARCHING + (1 - _SEARCHING) * done, 3)
    report_progress(lambda: {"text": text, "share": share})


def _report_part(now: Moment) -> bool:
    """Report a comparison's progress; return whether to end with the best so far."""
    return _report_search(now._replace(share=_SEARCHING * now.share))


def _report_search(now: Moment) -> bool:
    """Report the progress of a search; return whether to end with the best so far.

    What a search judges by is not what its answer is predicted with, and is no time to show.
    """
    return report_progress(lambda: {
        "text": now.text, "share": round(now.share, 3),
        "rows": folded_rows(np.sort(now.best)) if now.best is not None else "",
    })  # fmt: skip


def _wanted_strategy(wanted: requests.Plan) -> str:
    return wanted.strategy or usual_strategy(wanted.pattern)


def order(machine: Machine, offer: Offer, wanted: requests.Order) -> replies.Ordered:
    """Order ranks on nodes, as ``nidmap order`` does, or write a known order.

    The document that ``nidmap order --json`` prints is under ``order``.
    """
    del offer
    rows = rows_of(machine, wanted.nodes)
    _refuse_ranks(len(rows), wanted.ppn)
    placement = Placement(machine.names[rows], parse_counts(wanted.ppn, len(rows)), machine, rows)
    pattern = parse_pattern(safe_pattern(wanted.pattern))
    if wanted.slots:
        chosen = placement.with_order(
            np.array(wanted.slots), Origin(wanted.strategy, wanted.pattern)
        )
    else:
        chosen = order_by_strategy(placement, Job(wanted.pattern), _order_name(wanted.strategy))
    return replies.Ordered(
        schema="nidmap.page-order/1",
        order=document(chosen),
        node_rows=rows[chosen.node_of_rank].tolist(),
        format=wanted.format,
        filename=find(wanted.format).file_name,
        text=emit(chosen, wanted.format, wanted.launcher_order),
        neighbours=_rank_neighbours(chosen, pattern.on(placement)),
        notes=[chosen.origin.remark] if chosen.origin.remark else [],
    )


def _rank_neighbours(ranking: Placement, pattern: Any) -> replies.Neighbours | None:
    """Return each rank's partners; None if that is too much for a page."""
    blocks, total = [np.empty((2, 0), dtype=np.int64)], 0
    for edges in pattern.edges(1 << 18):
        a, b = edges.source, edges.target
        total += len(edges)
        if total > _MOST_EDGES:
            return None
        blocks += [np.stack([a, b]), np.stack([b, a])]
    rank, neighbour = np.concatenate(blocks, axis=1)
    at = np.lexsort((neighbour, rank))
    offsets = np.r_[0, np.cumsum(np.bincount(rank, minlength=ranking.ranks))]
    return replies.Neighbours(offsets.tolist(), neighbour[at].tolist())


def hops(machine: Machine, offer: Offer, wanted: requests.Hops) -> replies.Hops:
    """Return the number of links on shortest paths from one node's router to all others.

    With a routing they are the mean of the ways that it takes.
    """
    del offer
    row = int(rows_of(machine, wanted.from_)[0])
    if (machine.router[row] < 0).all():
        raise UsageError(f"{machine.names[row]} has no router")
    others = np.flatnonzero((machine.router >= 0).any(axis=1))
    ends = np.stack(rails_of(machine).first_ends(np.array([row]), others))
    pairs, which = np.unique(ends[:, ends[0] != ends[1]], axis=1, return_inverse=True)
    routing = wanted.routing or ("minimal" if "minimal" in routings(machine) else "")
    lengths = np.full(len(machine), -1.0)
    lengths[others] = 0.0
    hops = count(machine, pairs[0], pairs[1], routing).sum(axis=1)
    lengths[others[ends[0] != ends[1]]] = hops[which.reshape(-1)]
    return replies.Hops(
        from_=row,
        name=str(machine.names[row]),
        hops=np.round(lengths, 3).tolist(),
        kinds=list(channels(machine, routing).kinds),
    )


# --- what is asked, held to what a page may ask ---------------------------------------


def _wanted_job(wanted: requests.Describe | requests.Compare | requests.Plan, nodes: int) -> Job:
    """Return the requested job, if a page may ask about this many ranks."""
    _refuse_ranks(nodes, wanted.ppn)
    return Job(safe_pattern(wanted.pattern) or "alltoall", wanted.ppn, wanted.bytes)


def _refuse_ranks(nodes: int, ppn: int) -> None:
    if nodes * ppn > MOST_RANKS:
        raise UsageError(
            f"{nodes} nodes x {ppn} are more than {MOST_RANKS} ranks",
            "use the command line: nidmap compare, nidmap order",
        )


def safe_pattern(spec: str) -> str:
    """Return a pattern's text, refusing those that would read a file on the server."""
    name = spec.strip().partition(":")[0]
    if name in FILE_PATTERNS:
        raise UsageError(
            f"pattern {name} reads a file, which the page does not allow",
            "use the command line: nidmap compare --pattern " + printable(spec, 40),
        )
    return spec


def _order_name(strategy: str) -> str:
    """Return an order's name, refusing options of third-party orders, which might name files."""
    name = strategy or "row-major"
    if name not in orders.names():
        raise UsageError(
            f"unknown order {printable(name)!r}", f"choose from {', '.join(orders.names())}"
        )
    return name


def _node_request(machine: Machine, offer: Offer, wanted: requests.Choice) -> NodeRequest:
    """Return the request for nodes: free ones, or those of them that a text names."""
    free, states = offer.candidates, offer.states
    if wanted.from_.strip():
        listed = np.zeros_like(free)
        listed[_named_rows(machine, wanted.from_)] = True
        free = free & listed
        states = np.where(listed, states, UNLISTED)
    return NodeRequest(
        wanted.count,
        candidates=free,
        exclude=_named_rows(machine, wanted.exclude),
        per_blade=wanted.per_blade,
        seed=wanted.seed,
        promised=offer.promised,
        baseline=offer.baseline,
        kind=wanted.kind,
        states=states,
    )


def _named_rows(machine: Machine, text: str) -> Ints:
    """Return the rows that a text names; () for an empty text."""
    return rows_of(machine, text, repeats=True) if text.strip() else np.empty(0, dtype=np.int64)
