# SPDX-License-Identifier: Apache-2.0
"""``nidmap score``: the cost J of a rank order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.common import AdvancedCommand, json_option
from nidmap.placement.errors import UsageError
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.commands.job_options import OrderArguments, job_options, order_options
from nidmap.rankmap.emit.text import BrokenOrderError
from nidmap.rankmap.launch.request import JobArguments
from nidmap.rankmap.orders import find
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.score import cost, meets_bound, plain_number
from nidmap.rankmap.score import score as score_order
from nidmap.rankmap.search.auto_order import order_by_strategy

if TYPE_CHECKING:
    from nidmap.placement.placement import Placement
    from nidmap.rankmap.pattern import Pattern

SCHEMA = "nidmap.score/1"


@click.command(cls=AdvancedCommand)
@job_options
@order_options
@json_option
def score(job: JobArguments, order: OrderArguments, as_json: bool) -> int:
    """Score an order of ranks, from any file or from a strategy.

    J is the sum over pairs of ranks of weight times distance of their nodes.
    It is shown with the weight by level, the default order's J, and a lower
    bound where one is known. Where no machine is named or found, the nodes' names
    (--nodes, or the job's) are enough: any two are at distance 1 then. A file that
    is not a permutation of the job's slots is explained, with exit code 1; one that
    cannot be read gives 3. Strategy auto chooses as in `nidmap order`, by predicted
    time where the machine states bandwidths (--bytes and --algorithm say more of
    the job), and stderr says so; the score is J either way.

    \b
    nidmap score -m tree:4x16x6 --ppn 24 --pattern stencil:24x24x16 --order a.slots
    nidmap score -m shaheen2 --nodes 12-15 --ppn 32 --pattern matrix:comm.npz \\
          --order MPICH_RANK_ORDER
    nidmap score -m torus:8x8x8 --ppn 16 --pattern stencil:16x16x32 --strategy hilbert --json
    """
    if (order.path is None) == (order.strategy is None):
        raise UsageError("give either --order FILE or --strategy S")
    wanted, pattern = job.job(), parse_pattern(job.named_pattern())
    placement = job.placement_anywhere()
    fitted = pattern.on(placement)
    for note in getattr(fitted, "notes", ()):
        say(f"nidmap: {note}")
    try:
        if order.strategy:
            ordered = order_by_strategy(placement, wanted, order.strategy)
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
        **({"hop_bytes": None} if placement.machine is None else {}),  # no links are known
        "default_cost": plain_number(default),
        "default_optimal": meets_bound(default, scored.bound),
        "notes": list(getattr(fitted, "notes", ())),
        **chosen,
    }


def _score_words(document: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [
        f"J                  {document['cost']:,}  (default order {document['default_cost']:,})",
        f"lower bound        {_bound_text(document)}",
        f"hop-bytes          {_number_text(document['hop_bytes'])}",
        f"off-node weight    {document['off_node']:,},"
        f" at most {document['max_node_traffic']:,} per node",
        f"ranks per node     {document['min_ranks_a_node']} to {document['max_ranks_a_node']}",
    ]
    names = ["inside a node", *(f"inside a {n}" for n in document["levels"][1:-1]), "beyond"]
    by_level = zip(names, document["by_level"], strict=False)
    lines += [f"  {name:17}{weight:,}" for name, weight in by_level]
    lines += ["this order is optimal"] * document["optimal"]
    lines += ["default is optimal"] * document["default_optimal"]
    return "\n".join(lines) + "\n"


def _number_text(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _bound_text(document: dict[str, Any]) -> str:
    gap = document["gap"]
    if gap is None or gap > 1:
        return "no close one is known"
    return f"{document['lower_bound']:,} ({document['bound']}; J is {gap:.1%} above)"
