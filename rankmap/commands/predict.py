# SPDX-License-Identifier: Apache-2.0
"""``nidmap predict``: how long a pattern takes on a job's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nidmap.placement.commands.common import AdvancedCommand, json_option
from nidmap.placement.errors import UsageError
from nidmap.placement.machine_option import named_specs
from nidmap.placement.support.quantities import time_text
from nidmap.placement.support.tables import align_columns
from nidmap.placement.support.writing import to_json, write_output
from nidmap.rankmap.commands.job_options import OrderArguments, job_options, order_options
from nidmap.rankmap.launch.request import JobArguments
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.search.auto_order import order_by_strategy

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.rankmap.predict import Prediction


@click.command(cls=AdvancedCommand)
@job_options
@order_options
@json_option
def predict(job: JobArguments, order: OrderArguments, as_json: bool) -> None:
    """Predict the time of a pattern on a job's nodes, and name the bottleneck.

    The time is the busiest link's load over its bandwidth, plus latency and messages,
    phase by phase; every term is shown with its source, as is a lower bound for any
    placement on that many nodes.

    \b
    nidmap predict -m torus:8x8x8,bw=4.68 --nodes 0-63 --pattern alltoall --bytes 1000000 --json
    nidmap predict -m shaheen2,routing=minimal --nodes 12-43 --ppn 32 --pattern fft:32x32
    nidmap plan -m shaheen2 -N 64 | nidmap predict -m shaheen2 --nodes - --pattern stencil:4x4x4
    """
    if order.path is not None and order.strategy is not None:
        raise UsageError("give either --order or --strategy")
    machine = _machine_of(job)
    placement = job.placement(machine)
    predictor = Predictor(machine, job.job().on(placement.counts.tolist()))
    if order.path is not None:
        placement = order.read(placement)
    elif order.form is not None:
        raise UsageError("--format needs --order")
    elif order.strategy not in (None, "row-major"):
        placement = order_by_strategy(placement, predictor.job, order.strategy)
    prediction = predictor.ranged(placement, placement.origin.strategy)
    write_output(to_json(prediction.document()) if as_json else _prediction_words(prediction))


def _machine_of(job: JobArguments) -> Machine:
    """Return the machine; if there is none, say what works without one."""
    try:
        return job.machine()
    except UsageError as error:
        if job.nodes is None or named_specs(job.specs):
            raise
        hint = f"{error.hint}; nidmap score needs only the nodes' names"
        raise UsageError(f"predicting a time needs links: {error.message}", hint) from None


def _prediction_words(prediction: Prediction) -> str:
    """Return the prediction as text: a sentence, terms, link classes, assumptions."""
    worst = [("link class", "busiest for")]
    worst += [(kind, time_text(seconds)) for kind, seconds in prediction.by_class.items()]
    lines, span = [prediction.sentence], prediction.between
    if span is not None and span.unknowns:
        lines.append(
            f"{time_text(span.low)} to {time_text(span.high)} over the unknowns of the"
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
    rows = [("phase", "time", "limit", "bottleneck")]
    for phase in prediction.phases:
        worst, bottleneck = phase.loads.worst(), phase.limited_by
        if bottleneck == "link":
            bottleneck = f"{worst.kind} {worst.name.rpartition(' ')[0] or worst.name}".strip()
        rows.append(
            (phase.name, time_text(phase.seconds), time_text(phase.bound.seconds), bottleneck)
        )
    return align_columns(rows)
