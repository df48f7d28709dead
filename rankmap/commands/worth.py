"""What an order of ranks is worth: ``nidmap score`` by J, ``nidmap predict`` by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.common import (
    AdvancedCommand,
    json_option,
    say,
    to_json,
    write_output,
)
from nidmap.placement.errors import UsageError
from nidmap.placement.support.quantities import time_text
from nidmap.placement.support.tables import align_columns
from nidmap.rankmap.commands.model import OrderArguments, job_options, order_options
from nidmap.rankmap.emit.text import BrokenOrderError
from nidmap.rankmap.launch.request import JobArguments
from nidmap.rankmap.orders import find
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.score import cost, meets_bound, plain_number
from nidmap.rankmap.score import score as score_order
from nidmap.rankmap.search.auto_order import order_by_strategy

if TYPE_CHECKING:
    from nidmap.rankmap.pattern import Pattern
    from nidmap.rankmap.placement import Placement
    from nidmap.rankmap.predict import Prediction

SCHEMA = "nidmap.score/1"


@click.command(cls=AdvancedCommand)
@job_options
@order_options
@json_option
def score(job: JobArguments, order: OrderArguments, as_json: bool) -> int:
    """Score an order of ranks: anyone's file, or a strategy's.

    J is the sum over pairs of ranks of weight times distance of their nodes.
    It is shown with the weight by level, the default order's J, and a lower
    bound where one is known. A file that is not a permutation of the job's slots
    is explained, with exit code 1; one that cannot be read gives 3. Strategy
    auto chooses as in `nidmap order`, by predicted time where the machine
    states bandwidths (--bytes and --algorithm say more of the job), and stderr
    says so; the score is J either way.

    \b
    nidmap score -m tree:4x16x6 --ppn 24 --pattern stencil:24x24x16 --order a.slots
    nidmap score -m shaheen2 --nodes 12-15 --ppn 32 --pattern matrix:comm.npz \\
          --order MPICH_RANK_ORDER
    nidmap score -m torus:8x8x8 --ppn 16 --pattern stencil:16x16x32 --strategy hilbert --json
    """
    if (order.path is None) == (order.strategy is None):
        raise UsageError("give either --order FILE or --strategy S")
    sent, pattern = job.job(), parse_pattern(job.named_pattern())
    placement = job.placement(job.machine())
    fitted = pattern.on(placement)
    for note in getattr(fitted, "notes", ()):
        say(f"nidmap: {note}")
    try:
        if order.strategy:
            ordered = order_by_strategy(placement, sent, order.strategy)
        else:
            ordered = order.read(placement)
    except BrokenOrderError as error:
        if as_json:
            write_output(to_json({"schema": SCHEMA, "valid": False, "error": str(error)}))
        say(f"nidmap: invalid order: {error}")
        return 1
    if ordered.origin.optimised:
        say(f"nidmap: {ordered.origin.remark}")
    document = _score_document(ordered, fitted, placement)
    write_output(to_json(document) if as_json else _score_words(document))
    return 0


def _score_document(order: Placement, fitted: Pattern, placement: Placement) -> dict[str, Any]:
    scored = score_order(order, fitted)
    default = cost(find("row-major")(fitted, placement), fitted)
    chosen = {"optimised": order.origin.optimised} if order.origin.optimised else {}
    return {
        "schema": SCHEMA,
        "valid": True,
        "pattern": fitted.spec,
        "strategy": order.origin.strategy,
        "ranks": placement.ranks,
        "nodes": len(placement.counts),
        **scored.document(),
        "default_cost": plain_number(default),
        "default_optimal": meets_bound(default, scored.bound),
        "notes": list(getattr(fitted, "notes", ())),
        **chosen,
    }


def _score_words(document: dict[str, Any]) -> str:
    """Return the figures for a person."""
    lines = [
        f"J                  {document['cost']:,}  (default order {document['default_cost']:,})",
        f"lower bound        {_bound_text(document)}",
        f"hop-bytes          {document['hop_bytes']:,}",
        f"off-node weight    {document['off_node']:,},"
        f" at most {document['max_node_traffic']:,} a node",
        f"ranks a node       {document['min_ranks_a_node']} to {document['max_ranks_a_node']}",
    ]
    names = ["inside a node", *(f"inside a {n}" for n in document["levels"][1:-1]), "beyond"]
    by_level = zip(names, document["by_level"], strict=False)
    lines += [f"  {name:17}{weight:,}" for name, weight in by_level]
    lines += ["this order is optimal"] * document["optimal"]
    lines += ["default is optimal"] * document["default_optimal"]
    return "\n".join(lines) + "\n"


def _bound_text(document: dict[str, Any]) -> str:
    gap = document["gap"]
    if gap is None or gap > 1:
        return "none near it is known"
    return f"{document['lower_bound']:,} ({document['bound']}; J is {gap:.1%} above)"


@click.command(cls=AdvancedCommand)
@job_options
@order_options
@json_option
def predict(job: JobArguments, order: OrderArguments, as_json: bool) -> None:
    """Predict the time of a pattern on a job's nodes, and name the bottleneck.

    The time is the busiest link's load over its bandwidth, plus latency and
    messages, phase by phase; every term is shown with its source, beside the
    lower bound of any placement on so many nodes.

    \b
    nidmap predict -m torus:8x8x8,bw=4.68 --nodes 0-63 --pattern alltoall --bytes 1000000 --json
    nidmap predict -m shaheen2,routing=minimal --nodes 12-43 --ppn 32 --pattern fft:32x32
    nidmap plan -m shaheen2 -N 64 | nidmap predict -m shaheen2 --nodes - --pattern stencil:4x4x4
    """
    if order.path is not None and order.strategy is not None:
        raise UsageError("give either --order or --strategy")
    machine = job.machine()
    placement = job.placement(machine)
    predictor = Predictor(machine, job.job().on(placement.counts.tolist()))
    if order.path is not None:
        placement = order.read(placement)
    elif order.form is not None:
        raise UsageError("--format goes with --order")
    elif order.strategy not in (None, "row-major"):
        placement = order_by_strategy(placement, predictor.job, order.strategy)
    prediction = predictor.ranged(placement, placement.origin.strategy)
    write_output(to_json(prediction.document()) if as_json else _prediction_words(prediction))


def _prediction_words(prediction: Prediction) -> str:
    """Return the prediction for a person: a sentence, terms, link classes, what was assumed."""
    worst = [("link class", "busiest for")]
    worst += [(kind, time_text(seconds)) for kind, seconds in prediction.by_class.items()]
    lines, span = [prediction.sentence], prediction.between
    if span is not None and span.unknowns:
        lines.append(
            f"{time_text(span.low)} to {time_text(span.high)} over what is not known of the"
            f" machine; largest uncertainty: {span.most_unsure}"
        )
    width = max(len(term.name) for term in prediction.terms)
    lines += ["", *(
        f"{t.name:<{width}}  {time_text(t.seconds):>8}  {t.rests_on}" for t in prediction.terms
    )]  # fmt: skip
    lines += ["", align_columns(worst)]
    if len(prediction.phases) > 1:
        lines.append(_phase_lines(prediction))
    lines.append(f"wiring: {prediction.loads.wiring}; routing: {prediction.loads.routing}")
    lines += [f"note: {note}" for note in prediction.notes]
    return "\n".join(lines) + "\n"


def _phase_lines(prediction: Prediction) -> str:
    """Return a line for each phase."""
    rows = [("phase", "time", "limit", "binds")]
    for phase in prediction.phases:
        worst, binds = phase.loads.worst(), phase.binds
        if binds == "link":
            binds = f"{worst.kind} {worst.name.rpartition(' ')[0] or worst.name}".strip()
        rows.append((phase.name, time_text(phase.seconds), time_text(phase.bound_s), binds))
    return align_columns(rows)
