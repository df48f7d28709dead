"""``nidmap compare``, and a comparison as a table: for a terminal, and as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placement.commands.candidates import candidates
from placement.commands.common import (
    AdvancedCommand,
    kind_option,
    say,
    to_json,
    write_output,
)
from placement.commands.plan import bar
from placement.errors import UsageError
from placement.scheduler.baseline import baseline_of, live_baseline
from placement.support.quantities import size_text, time_text
from placement.support.reading import format_of_name
from placement.support.tables import align_columns, csv_table
from rankmap.commands.model import JobArguments, sent_options
from rankmap.compare import compare_strategies
from rankmap.compare.plots import draw_comparison
from rankmap.predict import Predictor

if TYPE_CHECKING:
    from rankmap.compare import Comparison, Entry

#: What the name of -o asks for.
SUFFIXES = {".csv": "csv", ".json": "json", ".svg": "svg", ".png": "png"}

#: Columns of words: strategy, order, class, link.
_WORDS = (0, 1, 6, 7)


@click.command(cls=AdvancedCommand)
@sent_options
@click.option("-N", "--count", "count", type=int, required=True, help="Number of nodes.")
@click.option(
    "--strategies", metavar="A,B", default="", help="Planners; default: auto and its candidates."
)
@click.option(
    "--orders", metavar="A,B", default="", help="Orders of the ranks; default: the best of each."
)
@click.option("--from", "source", metavar="idle|-|LIST|FILE", help="Choose only from these nodes.")
@click.option("--exclude", metavar="LIST|FILE", help="Exclude these nodes.")
@click.option("--baseline", metavar="S", default="", help="Compare with this strategy.")
@click.option("--per-blade", type=click.IntRange(1, 4), default=4, help="For strategy blades.")
@kind_option
@click.option("--seed", type=int, default=0, show_default=True, help="For strategy random.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="FILE", help=".csv, .json, .svg, .png or text.")
def compare(
    job: JobArguments,
    count: int,
    strategies: str,
    orders: str,
    source: str | None,
    exclude: str | None,
    baseline: str,
    per_blade: int,
    seed: int,
    kind: str,
    as_json: bool,
    output: str | None,
) -> None:
    """Compare ways to choose and order a job's nodes, by their predicted time.

    One row per strategy and order, the fastest first; by default those that auto
    chooses from, and auto itself. Columns: predicted time, its ratio to the
    scheduler's own choice (--baseline names another), the range of that gain
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
    sent, machine = job.job(), job.machine()
    predictor = Predictor(machine, sent)
    offered = candidates(machine, count, source, exclude=exclude)
    with bar() as shown:
        comparison = compare_strategies(
            predictor,
            count,
            _split_names(strategies),
            _split_names(orders),
            shown,
            (live_baseline if offered.slurm else baseline_of)(machine, baseline),
            per_blade=per_blade,
            seed=seed,
            **offered.request(kind),
        )
    write_output(_comparison_text(comparison, form), output)
    if output not in (None, "-") or form != "text":
        say(f"nidmap: {comparison.sentence}")


def _split_names(text: str) -> list[str]:
    """Return the names in a comma-separated option; none where it is not given."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if text and not words:
        raise UsageError(f"'{text}' names nothing to compare", "leave it out for the best of all")
    return words


def _comparison_text(comparison: Comparison, form: str) -> str | bytes:
    """Return a comparison in a format."""
    if form == "json":
        return to_json(comparison.document())
    if form in ("svg", "png"):
        return draw_comparison(comparison, form)
    return as_csv(comparison) if form == "csv" else as_text(comparison)


def _counted_levels(comparison: Comparison) -> list[str]:
    """Return the levels that nodes are counted by, outermost first."""
    return list(comparison.entries[0].plan.facts["touches"])


def _row_cells(comparison: Comparison, entry: Entry) -> list[str]:
    """Return one entry as the cells of a row."""
    worst, binds, link = entry.found.bottleneck, entry.found.binds, "-"
    if binds == "link":
        binds, link = worst.kind, worst.name.rpartition(" ")[0] or worst.name
    touches = [str(entry.plan.facts["touches"][level]) for level in _counted_levels(comparison)]
    return [
        entry.strategy,
        entry.order,
        time_text(entry.found.time_s),
        f"{entry.ratio:.3f}",
        "-" if entry.default else entry.gain.range_text,
        f"{100 * entry.found.share:.3g} %" if entry.found.bound_s else "-",
        binds or "-",
        link,
        size_text(entry.found.hop_bytes),
        *touches,
    ]


def _column_heads(comparison: Comparison) -> list[str]:
    """Return what stands above the columns."""
    return [
        "strategy", "order", "time", "to default", "as fast", "of the limit", "binds", "link",
        "hop-bytes",
        *_counted_levels(comparison),
    ]  # fmt: skip


def as_text(found: Comparison) -> str:
    """Return a comparison for a person: a sentence, the table, what was assumed."""
    table = [_column_heads(found), *(_row_cells(found, entry) for entry in found.entries)]
    loads = found.best.found.loads
    lines = [found.sentence, "", align_columns(table, left=_WORDS)]
    lines.append(f"wiring: {loads.wiring}; routing: {loads.routing}")
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n"


def as_csv(found: Comparison) -> str:
    """Return a comparison as CSV, figures in full: seconds, bytes, GB/s.

    A cell that a spreadsheet would take for a formula is led by an apostrophe.
    """
    rows = [_figure_cells(entry.document()) for entry in found.entries]
    heads = list(rows[0])
    return csv_table([heads, *([row[head] for head in heads] for row in rows)])


def _figure_cells(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row, by what stands above them, of an entry as JSON takes it."""
    row = {name: entry[name] for name in ("strategy", "order", "default", "time_s", "ratio")}
    row["default"] = int(row["default"])
    row |= {f"gain_{end}": entry["gain"][end] for end in ("low", "likely", "high")}
    row |= {name: entry[name] for name in ("bound_s", "percent_of_bound", "binds")}
    row |= {f"bottleneck_{name}": figure for name, figure in entry["bottleneck"].items()}
    del row["bottleneck_seconds"]
    row |= {"hop_bytes": entry["hop_bytes"], **entry["touches"]}
    row |= {f"{kind}_s": seconds for kind, seconds in entry["by_class"].items()}
    return {**row, "nodelist": entry["nodelist"]}
