# SPDX-License-Identifier: Apache-2.0
"""``nidmap compare``, and comparisons as tables: for a terminal, and as CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.candidates import candidates
from nidmap.placement.commands.common import AdvancedCommand, kind_option
from nidmap.placement.errors import UsageError
from nidmap.placement.scheduler.baseline import baseline_of, live_baseline
from nidmap.placement.support.quantities import size_text, time_text
from nidmap.placement.support.reading import format_of_name
from nidmap.placement.support.tables import align_columns, csv_table
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import bar, say
from nidmap.rankmap.commands.job_options import pattern_options
from nidmap.rankmap.compare import compare_strategies
from nidmap.rankmap.compare.plots import draw_comparison
from nidmap.rankmap.launch.request import JobArguments
from nidmap.rankmap.predict import Predictor

if TYPE_CHECKING:
    from nidmap.rankmap.compare import Comparison, Entry

#: Format implied by the suffix of -o.
SUFFIXES = {".csv": "csv", ".json": "json", ".svg": "svg", ".png": "png"}

#: Columns of words: strategy, order, class, link.
_WORDS = (0, 1, 6, 7)


@click.command(cls=AdvancedCommand)
@pattern_options
@click.option("-N", "--count", "count", type=int, required=True, help="Number of nodes.")
@click.option(
    "--strategies", metavar="A,B", default="", help="Planners; default: auto and its candidates."
)
@click.option(
    "--orders", metavar="A,B", default="", help="Orders of the ranks; default: the best of each."
)
@click.option("--from", "source", metavar="idle|-|LIST|FILE", help="Choose only from these nodes.")
@click.option("--exclude", metavar="LIST|FILE", help="Exclude these nodes.")
@click.option(
    "--baseline",
    metavar="S",
    default="",
    help="Strategy to compare with; default: the scheduler's own.",
)
@click.option(
    "--per-blade",
    type=click.IntRange(1, 4),
    default=4,
    help="Nodes per blade, for strategy blades.",
)
@kind_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for strategy random.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE: .csv, .json, .svg, .png or text."
)
def compare(
    job: JobArguments, count: int, as_json: bool, output: str | None, **params: Any
) -> None:
    """Compare ways to choose and order a job's nodes by their predicted time.

    One row per strategy and order, auto first, then the fastest; by default those
    that auto chooses from, and auto itself. Columns: predicted time, its ratio to the
    scheduler's own choice (--baseline selects another), the range of that gain
    over all unknowns, the bottleneck, hop-bytes, the groups and switches that
    the nodes touch, and the distance from the lower bound. The suffix of -o
    chooses a table, or a picture of the time by strategy, the load by link
    class and the traffic between groups (which needs matplotlib).

    \b
    nidmap compare -m shaheen2 -N 216 --pattern alltoall --bytes 1e6
    nidmap compare -m shaheen2 -N 64 --ppn 32 --pattern fft:32x64 --orders row-major,morton
    nidmap compare -m torus:8x8x8 -N 64 --pattern stencil:4x4x4 --strategies hilbert -o a.svg
    """
    form = "json" if as_json else format_of_name(output, SUFFIXES, "text")
    wanted, machine = job.job(), job.machine()
    predictor = Predictor(machine, wanted)
    offered = candidates(machine, count, params["source"], exclude=params["exclude"])
    with bar() as shown:
        nodes = replace(
            offered.request(count, params["kind"]),
            per_blade=params["per_blade"],
            seed=params["seed"],
            baseline=(live_baseline if offered.slurm else baseline_of)(machine, params["baseline"]),
        )
        strategies, orders = _split_names(params["strategies"]), _split_names(params["orders"])
        comparison = compare_strategies(predictor, nodes, strategies, orders, shown)
    write_output(_comparison_text(comparison, form), output)
    if output not in (None, "-") or form != "text":
        say(f"nidmap: {comparison.sentence}")


def _split_names(text: str) -> list[str]:
    """Return the names in a comma-separated option; none if it is not given."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if text and not words:
        raise UsageError(
            f"'{text}' names nothing to compare", "leave it out to compare the best of all"
        )
    return words


def _comparison_text(comparison: Comparison, form: str) -> str | bytes:
    """Return a comparison in a format."""
    if form in ("svg", "png"):
        return draw_comparison(comparison, form)
    if form == "json":
        return to_json(comparison.document())
    return as_csv(comparison) if form == "csv" else as_text(comparison)


def as_text(comparison: Comparison) -> str:
    """Return a comparison as text: a sentence, the table, the assumptions."""
    loads = comparison.best.found.loads
    rows = [_row_cells(entry) for entry in comparison.entries]
    table = [[*rows[0]], *([*row.values()] for row in rows)]
    lines = [comparison.sentence, "", align_columns(table, left=_WORDS)]
    lines.append(f"wiring: {loads.wiring}; routing: {loads.routing}")
    lines += [f"note: {note}" for note in comparison.notes]
    return "\n".join(lines) + "\n"


def _row_cells(entry: Entry) -> dict[str, str]:
    """Return an entry as the cells of a row, by column heading."""
    prediction = entry.found
    worst, bottleneck, link = prediction.bottleneck, prediction.limited_by, "-"
    if bottleneck == "link":
        bottleneck, link = worst.kind, worst.name.rpartition(" ")[0] or worst.name
    return {
        "strategy": entry.strategy,
        "order": entry.order,
        "time": time_text(prediction.time_s),
        "to default": f"{entry.ratio:.3f}",
        "as fast": "-" if entry.default else entry.gain.range_text,
        "of the limit": f"{100 * prediction.share:.3g} %" if prediction.bound_s else "-",
        "bottleneck": bottleneck or "-",
        "link": link,
        "hop-bytes": size_text(prediction.hop_bytes),
        **{level: str(count) for level, count in entry.plan.facts["touches"].items()},
    }


def as_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV with unrounded figures: seconds, bytes, GB/s.

    A cell that a spreadsheet would take for a formula is led by an apostrophe.
    """
    rows = [_figure_cells(entry.document()) for entry in comparison.entries]
    return csv_table([rows[0], *([row[head] for head in rows[0]] for row in rows)])


def _figure_cells(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row, by column heading, for an entry as JSON."""
    row = {name: entry[name] for name in ("strategy", "order", "default", "time_s", "ratio")}
    row["default"] = int(row["default"])
    row |= {f"gain_{end}": entry["gain"][end] for end in ("low", "likely", "high")}
    row |= {name: entry[name] for name in ("bound_s", "percent_of_bound", "limited_by")}
    row |= {f"bottleneck_{name}": figure for name, figure in entry["bottleneck"].items()}
    del row["bottleneck_seconds"]
    row |= {"hop_bytes": entry["hop_bytes"], **entry["touches"]}
    row |= {f"{kind}_s": seconds for kind, seconds in entry["by_class"].items()}
    return {**row, "nodelist": entry["nodelist"]}
