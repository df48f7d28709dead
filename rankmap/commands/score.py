"""``nidmap score``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import (
    machine_from,
    machine_option,
    report_options,
    say,
    to_json,
    write_output,
)
from placement.errors import UsageError
from rankmap.commands.model import job_of, sending_options

if TYPE_CHECKING:
    from rankmap.order import Order
    from rankmap.pattern import Pattern
    from rankmap.score import Score
    from rankmap.slots import Slots

__all__ = ["score"]

SCHEMA = "nidmap.score/1"


@click.command()
@machine_option
@click.option("--nodes", metavar="LIST|FILE|-", help="The job's nodes, as for nidmap order.")
@click.option("--ppn", metavar="N[,N...]", help="Ranks a node: 24 or 24,24,12.")
@click.option("--pattern", metavar="P", help="Who talks to whom: graph:FILE, stencil:24x24x16 …")
@click.option("--grid", metavar="GRID", help="Short for --pattern stencil:GRID.")
@click.option("--order", "path", metavar="FILE|-", help="An order file; default: a strategy's.")
@click.option(
    "--order-format",
    "--format",
    "form",
    metavar="F",
    help="Its format: slots, mpich, slurm, json …; never guessed from what is in it.",
)
@click.option("--strategy", metavar="S", help="Score this strategy's order instead of a file's.")
@click.option(
    "--launcher-order",
    type=click.Choice(["sorted", "given"]),
    default="sorted",
    show_default=True,
    help="The node order that a file of ranks by slot was made for.",
)
@click.option("--job", metavar="ID", help="What is known of a job that `nidmap run` launched.")
@click.option(
    "--ask", is_flag=True, help="With --job: a small step asks the ranks of a running job."
)
@click.option("--order-dir", metavar="DIR", help="With --job: where `run` kept the order.")
@sending_options
@report_options
def score(
    specs: tuple[str, ...],
    nodes: str | None,
    ppn: str | None,
    pattern: str | None,
    grid: str | None,
    path: str | None,
    form: str | None,
    strategy: str | None,
    launcher_order: str,
    job: str | None,
    ask: bool,
    order_dir: str | None,
    as_json: bool,
    output: str | None,
    **model: Any,
) -> int:
    """Score an order of ranks: anyone's file, or a strategy's.

    J is the sum over pairs of ranks of weight times distance of their nodes.
    Beside it stand the weight by level, the default order's J, and a lower
    bound where one is known. A file that is no permutation of the job's slots
    is explained, with exit code 1; one that cannot be read gives 3. Strategy
    auto chooses as in `nidmap order`, by predicted time where the machine
    states bandwidths (--bytes, --routing … say more of the job), and stderr
    says so; J is J all the same.

    --job ID takes what `nidmap run` keeps beside its order files (after the
    job's end only where --order-dir named a place for them), and compares
    it with what Slurm says of the job's nodes and, with --ask, what the ranks
    of a running job say themselves. Slurm keeps no record of which rank sat
    where: after the end only what `run --verify` wrote down is known.

    \b
    nidmap score -m tree:4x16x6 --ppn 24 --grid 24x24x16 --order a.slots
    nidmap score -m shaheen2 --nodes 12-15 --ppn 32 --pattern matrix:comm.npz \\
          --order MPICH_RANK_ORDER
    nidmap score -m torus:8x8x8 --ppn 16 --grid 16x16x32 --strategy hilbert --json
    nidmap score --job 4711 --ask
    """
    from rankmap.emit.text import BrokenOrderError
    from rankmap.joint.by_strategy import order_by_strategy
    from rankmap.order_file import read_order_file

    if job is not None:
        from rankmap.commands.job import report
        from rankmap.commands.order import _pattern as text_of

        if path or strategy or nodes or ppn:
            raise UsageError("--job takes order, nodes and ranks from what `run` kept")
        return report(job, specs, text_of(pattern, grid), ask, order_dir, as_json, output)
    if ask or order_dir:
        raise UsageError("--ask and --order-dir go with --job")
    if (path is None) == (strategy is None):
        raise UsageError("give either --order FILE or --strategy S")
    wanted = _pattern(pattern, grid)
    slots = _slots(specs, nodes, ppn)
    fitted = wanted.on(slots)
    for note in getattr(fitted, "notes", ()):
        say(f"nidmap: {note}")
    try:
        made = (
            order_by_strategy(slots, wanted, strategy, job_of(model))
            if strategy
            else read_order_file(path or "-", form, slots, launcher_order)
        )
    except BrokenOrderError as error:
        if as_json:
            write_output(to_json({"schema": SCHEMA, "valid": False, "error": str(error)}), output)
        say(f"nidmap: no valid order: {error}")
        return 1
    if made.optimised:
        say(f"nidmap: {made.remark}")
    document = _document(made, fitted, slots)
    write_output(to_json(document) if as_json else _words(document), output)
    return 0


def _pattern(pattern: str | None, grid: str | None) -> Pattern:
    from rankmap.commands.order import _pattern as text_of
    from rankmap.pattern import parse_pattern

    text = text_of(pattern, grid)
    if not text:
        raise UsageError("no pattern given", "use --pattern P or --grid GRID")
    return parse_pattern(text)


def _slots(specs: tuple[str, ...], nodes: str | None, ppn: str | None) -> Slots:
    from rankmap.commands.order import _slots as slots_of

    return slots_of(machine_from(specs), nodes, ppn)


def _document(made: Order, fitted: Pattern, slots: Slots) -> dict[str, Any]:
    from rankmap.orders import find
    from rankmap.score import cost, meets, plain
    from rankmap.score import score as figures

    found: Score = figures(made, fitted)
    default = cost(find("row-major")(fitted, slots), fitted)
    head = {
        "schema": SCHEMA,
        "valid": True,
        "pattern": fitted.spec,
        "strategy": made.strategy,
        "ranks": len(slots),
        "nodes": len(slots.counts),
    }
    more: dict[str, Any] = {
        "default_cost": plain(default),
        "default_optimal": meets(default, found.bound),
        "notes": list(getattr(fitted, "notes", ())),
    }
    if made.optimised:
        more["optimised"] = made.optimised
    return head | found.document() | more


def _words(found: dict[str, Any]) -> str:
    """Return the figures for a person."""
    lines = [
        f"J                  {found['cost']:,}  (default order {found['default_cost']:,})",
        f"lower bound        {_bound(found)}",
        f"hop-bytes          {found['hop_bytes']:,}",
        f"off-node weight    {found['off_node']:,}, at most {found['max_node_traffic']:,} a node",
        f"ranks a node       {found['min_ranks_a_node']} to {found['max_ranks_a_node']}",
    ]
    names = ["inside a node", *(f"inside a {n}" for n in found["levels"][1:-1]), "beyond"]
    lines += [
        f"  {name:17}{weight:,}" for name, weight in zip(names, found["by_level"], strict=False)
    ]
    if found["optimal"]:
        lines.append("this order is optimal")
    if found["default_optimal"]:
        lines.append("default is optimal")
    return "\n".join(lines) + "\n"


def _bound(found: dict[str, Any]) -> str:
    if found["lower_bound"] <= 0:
        return "none known"
    gap = found["gap"]
    return f"{found['lower_bound']:,} ({found['bound']}; J is {gap:.1%} above)"
