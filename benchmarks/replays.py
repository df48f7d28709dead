# SPDX-License-Identifier: Apache-2.0
"""What five policies do to all jobs: two machines, a real and a synthetic trace.

``python -m benchmarks.replays`` writes the report, its picture, and what they come to into the
guide's page (docs/trust/replays.md), and prints that; with ``--resume`` it goes on where it was
ended, or makes them of what is kept. Hours on two cores; the page says what each setting took.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from nidmap.placement.machine_option import machine_from
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.writing import write_output
from nidmap.placement.ui import bar, say
from nidmap.rankmap.compare.plots import COLOURS, picture_bytes
from nidmap.workloads.replay.readers import read_trace
from nidmap.workloads.replay.report import Range, Report
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.study import Case, Study, run_study
from nidmap.workloads.replay.synthetic import synthetic_trace
from nidmap.workloads.replay.trace import Trace, fit_trace

POLICIES = ("slurm", "tree", "soft", "pin", "auto")
#: By machine and trace: seeds of the synthetic trace, and of the patterns drawn.
SEEDS = {
    ("Shaheen II", "UniLu-Gaia"): 2, ("Shaheen II", "synthetic month"): 2,
    ("fat tree", "UniLu-Gaia"): 3, ("fat tree", "synthetic month"): 3,
}  # fmt: skip
LOAD = 0.8

#: By name; the fat tree has half the links up that full bandwidth would take.
MACHINES = {"Shaheen II": "shaheen2", "fat tree": "fattree:leaf=24,leaves=64,spines=12,bw=12.5"}

#: Days of the synthetic trace, and of UniLu-Gaia from its beginning.
MONTH, WEEKS = 31.0, 14.0

_PACKAGE, _TRACE = "evalys==4.0.7", "UniLu-Gaia-2014-2.swf"
_HOME = Path(__file__).parents[1]
_REPORT, _PAGE, _PICTURE = (
    _HOME / path
    for path in (
        "benchmarks/reports/replays.md",
        "docs/trust/replays.md",
        "docs/images/replays.svg",
    )
)

_INTRO = """What [`nidmap replay`]({guide}) says of {settings}: who gains and who
loses if all jobs are placed by one policy.

- Machines: Shaheen II (6,174 nodes, dragonfly), and a fat tree of 1,536 nodes with half the links
  up that full bandwidth would take.
- Traces: the first two weeks of UniLu-Gaia (2014, from the source distribution of evalys), each
  processor taken for a node and all sizes scaled until the jobs ask for 80 % of the machine; and a
  month by the model of Lublin and Feitelson that asks for as much, another one for each seed.
- All jobs communicate the share of their time that a row says. Half of the users send stencils,
  half all-to-alls, drawn by seed.

A range is over two or three seeds, **bold** where all agree on the sign. Changes are against
`slurm`, Slurm's own choice without a topology plugin.
"""

_UNKNOWN = """## What is not known

- The traces say nothing of communication: pattern, share and bytes are assumed. At a real site
  jobs differ in their share.
- `auto` takes the nodes on which a job itself communicates fastest, next to what runs already. What
  it does to those jobs, and to those that come later, is not in its choice.
- Two or three seeds are few: with more, some of what agrees here would not. A start that comes a
  second later moves all that follow, so that single groups of jobs win or lose by luck.
- Users are assumed not to change what they submit. Who pins and waits would soon ask for other
  nodes.
- The times are the quick estimates that `nidmap replay --check` holds against the predictor, not
  measurements on these machines.
- Gaia ran its jobs under OAR, some of them preemptible, on 151 nodes; large jobs of a large
  machine are not in it.
- Requested times are the trace's or the model's. Jobs that ran past theirs because they were
  slowed down were not ended.
"""

_HOW_COUNTED = """A change counts where all replays of a row below agree on it: *earlier* and
*later* count the groups by size, row by row, that finish so. A policy is called better or worse
for jobs of a size where a third of these groups agree on it, and at most half as many on the
opposite."""

#: Jobs by size: the largest that counts as such, and what they are called.
_CLASSES = ((7, "up to 7 nodes"), (127, "8 to 127 nodes"), (10**9, "128 nodes and more"))


@dataclass(frozen=True)
class Setting:
    """A trace on a machine, with its results."""

    machine: str
    trace: str
    study: Study
    summaries: dict[Case, dict[str, Any]]

    def cost(self, policy: str) -> Floats:
        """Return the processor seconds and MiB of each replay of a policy, float64 (k, 2)."""
        folder = Path(self.study.folder)
        files = [folder / f"{case.label}.npz" for case in self.summaries if case.policy == policy]
        return np.array([np.load(path)["cost"] for path in files])

    @property
    def shares(self) -> list[float]:
        """The shares of their time that jobs communicate."""
        return sorted({case.share for case in self.summaries})

    def report(self, share: float) -> Report:
        """Return the report on the replays for one share of communication."""
        chosen = {case: figures for case, figures in self.summaries.items() if case.share == share}
        return Report(self.study, chosen)

    @property
    def title(self) -> str:
        """Describe what was replayed."""
        sizes = [len(trace) for trace in self.study.traces]
        jobs = " to ".join(f"{n:,}" for n in sorted({min(sizes), max(sizes)}))
        seeds = counted(SEEDS[self.machine, self.trace], "seed")
        return f"{self.machine}, {self.trace}: {jobs} jobs, {seeds}"


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path("replays"),
              show_default=True, help="Folder for the trace and all replays.")  # fmt: skip
@click.option("--resume", "resumed", is_flag=True, help="Continue with saved replays.")
@click.option("--setting", "chosen", multiple=True, metavar="MACHINE, TRACE",
              help="One of them alone, as 'fat tree, UniLu-Gaia'; may repeat.")  # fmt: skip
@click.option("--shares", default="0.1,0.3,0.5", show_default=True, metavar="S,…",
              help="Shares of their time that jobs communicate.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path),
              help="Write the report and its picture there, and no page.")  # fmt: skip
def replays(
    folder: Path, resumed: bool, chosen: tuple[str, ...], shares: str, output: Path | None
) -> None:
    """Replay both traces on both machines under five policies, and write the page."""
    numbers = tuple(map(float, shares.split(",")))
    settings = [
        replay_setting(machine, trace, numbers, folder, resumed)
        for machine, trace in product(reversed(MACHINES), ("synthetic month", "UniLu-Gaia"))
        if not chosen or f"{machine}, {trace}" in chosen
    ]
    settings.reverse()
    words = "".join(f' --setting "{setting}"' for setting in chosen)
    words += f" --shares {shares}" if shares != "0.1,0.3,0.5" else ""
    words += f" -o {output.name}" if output else ""
    what = "; ".join(chosen) or "two machines under two traces"
    report = output or _REPORT
    picture = report.parent / "images" / f"{report.stem}.svg" if output else _PICTURE

    def summary(page: Path) -> list[str]:
        guide, figure = (
            os.path.relpath(path, page.parent) for path in (_HOME / "docs/howto/replay.md", picture)
        )
        return [_INTRO.format(guide=guide, settings=what), short_text(settings, figure)]

    origin = f"<!-- made by `python -m benchmarks.replays{words}`: change that, not this page -->\n"
    head = ["# Five policies for a whole site\n", origin]
    parts = [*head, *summary(report), *map(setting_text, settings), _UNKNOWN]
    picture.parent.mkdir(parents=True, exist_ok=True)
    write_output("\n".join(parts), str(report))
    write_output(picture_bytes("svg", lambda new: draw_sizes(settings, new), {}), str(picture))
    if output is None:
        block = "\n".join([*summary(_PAGE), _UNKNOWN])
        before, mark, rest = _PAGE.read_text(encoding="utf-8").partition("<!-- made: ")
        command, _, old = rest.partition("\n")
        _, _, after = old.partition("<!-- end -->")
        page = f"{before}{mark}{command}\n{block}<!-- end -->{after}"
        write_output(page, str(_PAGE))
        sys.stdout.write(block)


def replay_setting(
    name: str, trace: str, shares: tuple[float, ...], folder: Path, resumed: bool
) -> Setting:
    """Replay a trace on a machine."""
    machine = machine_from((MACHINES[name],))
    nodes, seeds = int(machine.compute.sum()), SEEDS[name, trace]
    if trace == "UniLu-Gaia":
        traces: tuple[Trace, ...] = (gaia_trace(folder, nodes),)
    else:
        traces = tuple(synthetic_trace(MONTH, LOAD, 1 + seed, nodes) for seed in range(seeds))
    cases = [Case(p, s, k) for s, k, p in product(shares, range(seeds), POLICIES)]
    kept = folder / f"{name} {trace}".lower().replace(" ", "-")
    kept.mkdir(parents=True, exist_ok=True)
    ppn = int(machine.cores.min(initial=1)) or 1
    study = Study(
        machine, traces, tuple(cases), Rules(), machine.compute, ppn=ppn, folder=str(kept)
    )
    with bar() as show:
        summaries = run_study(study, resumed, show)
    if summaries is None:
        sys.exit(0)
    setting = Setting(name, trace, study, summaries)
    seconds, most = np.concatenate([setting.cost(policy) for policy in POLICIES]).T
    say(f"{setting.title}: {seconds.sum():,.0f} processor seconds, at most {most.max():,.0f} MiB")
    return setting


def gaia_trace(folder: Path, nodes: int) -> Trace:
    """Return the first weeks of UniLu-Gaia, scaled to a load."""
    path = folder / _TRACE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = ["pip", "download", "-q", "--no-deps", "--no-binary", "evalys", "-d", str(folder)]
        subprocess.run([sys.executable, "-m", *words, _PACKAGE], check=True)
        with tarfile.open(next(folder.glob("evalys-*.tar.gz"))) as packed:
            member = next(name for name in packed.getnames() if name.endswith(_TRACE))
            content = packed.extractfile(member)
            assert content is not None
            path.write_bytes(content.read())
    trace = read_trace(str(path), 1.0)
    early = trace.submit <= WEEKS * 86400
    mean_nodes = float((trace.nodes * trace.run)[early].sum()) / (WEEKS * 86400)
    return fit_trace(trace, nodes, LOAD * nodes / mean_nodes, WEEKS)


# --- the page -------------------------------------------------------------------------

#: What a row shows: its head, where it is found, a share or minutes.
_COLUMNS = (
    ("node-hours", "node_hours", True),
    ("mean turnaround", "turnaround_mean", False),
    ("median wait", "wait_median", False),
    ("95th wait", "wait_95", False),
)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def change_text(change: Range | None, relative: bool) -> str:
    """Format a change, in bold if all replays agree on its sign."""
    if change is None:
        return "-"
    times, form, unit = (100, "{:+.1f}", " %") if relative else (1, "{:+.1f}", " min")
    text = Range(*(times * value for value in change)).text(form) + unit
    return f"**{text}**" if change.agrees(_alike(relative)) else text


def short_text(settings: list[Setting], figure: str) -> str:
    """Return what all settings come to: sentences, the best policies, the picture, the cost."""
    lines = [f"- {best_overall(settings, *column)}" for column in _COLUMNS[:2]]
    lines += [f"- {verdict_text(settings, policy)}" for policy in POLICIES[1:]]
    parts = [
        f"## In short\n\n{_HOW_COUNTED}\n", *lines, "",
        short_table(settings), f"![turnaround by size]({figure})\n",
        "## What a replay takes\n", cost_text(settings),
    ]  # fmt: skip
    return "\n".join(parts)


def short_table(settings: list[Setting]) -> str:
    """Return, for each setting, the policies with fewest node-hours and most losers."""
    rows = []
    for setting, share in _rows_of(settings):
        report = setting.report(share)
        best = [best_text(report, *column[1:]) for column in _COLUMNS[:2]]
        losers = {policy: len(report.losses(policy)) for policy in POLICIES[1:]}
        most = max(losers, key=lambda policy: losers[policy])
        words = f"{most} ({losers[most]})" if losers[most] else "none"
        rows.append([setting.machine, setting.trace, f"{100 * share:.0f} %", *best, words])
    heads = ["machine", "trace", "share", "fewest node-hours", "shortest mean turnaround",
             "most groups later in every replay"]  # fmt: skip
    return table(heads, rows)


def _rows_of(settings: list[Setting]) -> list[tuple[Setting, float]]:
    """Return the rows of the short table: settings and shares."""
    return [(setting, share) for setting in settings for share in setting.shares]


def best_overall(settings: list[Setting], head: str, key: str, relative: bool) -> str:
    """Say which policy lowers a figure most often, and what it gains there."""
    changes = []
    for setting, share in _rows_of(settings):
        report = setting.report(share)
        of_policy = {p: report.change(p, "all", key, relative=relative) for p in POLICIES[1:]}
        known = {policy: change for policy, change in of_policy.items() if change}
        best = min(known, key=lambda policy: known[policy].likely)
        changes.append((best, known[best]))
    counts = Counter(best for best, change in changes if change.likely < 0)
    if not counts:
        return f"No policy lowers {head} in any row."
    policy, most = counts.most_common(1)[0]
    gains = [change for best, change in changes if best == policy and change.likely < 0]
    agreed = sum(change.agrees(_alike(relative)) for change in gains)
    likely = [abs(change.likely) * (100 if relative else 1) for change in gains]
    unit = "%" if relative else "min"
    return (
        f"The lowest {head}: most often under `{policy}`, in {most} of {len(changes)} rows below, "
        f"by {Range.of(likely).text()} {unit}; all replays agree in {agreed} of them."
    )


def whom_text(settings: list[Setting], policy: str) -> str:
    """Say for which jobs, by size, a policy is better, and for which worse."""
    better, worse, even = [], [], []
    least = 0
    for most, words in _CLASSES:
        changes = [
            size_change(setting.report(share), policy, label)
            for setting, share in _rows_of(settings)
            for label in sizes(setting)
            if least < _least_nodes(label) <= most
        ]
        least = most
        agreed = [change.likely for change in changes if change and change.agrees(0.002)]
        later = sum(likely > 0 for likely in agreed)
        minority, majority = sorted((later, len(agreed) - later))
        decided = majority >= max(2 * minority, len(changes) / 3)
        group = even if not decided else worse if later == majority else better
        group.append(f"{words} ({_sign_text(changes, 0.002, 'earlier', 'later')})")
    verdicts = (
        ("better for jobs of", better),
        ("worse for", worse),
        ("undecided for", even),
    )
    return "; ".join(f"{words} {', '.join(group)}" for words, group in verdicts if group)


def cost_text(settings: list[Setting]) -> str:
    """Return the time and memory of replays against jobs and nodes."""
    rows = []
    for setting in settings:
        costs = {policy: setting.cost(policy) for policy in POLICIES}
        jobs = float(np.mean([len(trace) for trace in setting.study.traces]))
        means = [f"{1000 * cost[:, 0].mean() / jobs:,.1f}" for cost in costs.values()]
        every = np.concatenate(list(costs.values()))
        rows.append([setting.machine, setting.trace, f"{int(setting.study.up.sum()):,}",
                     f"{jobs:,.0f}", str(len(every)), *means, f"{every[:, 0].sum():,.0f}",
                     f"{every[:, 1].max():,.0f}"])  # fmt: skip
    heads = ["machine", "trace", "nodes", "jobs", "replays", *POLICIES, "all, s", "MiB"]
    lead = (
        "Processor seconds for 1,000 jobs under each policy, those of all replays, and the most "
        "memory of a process.\n"
    )
    return f"{lead}\n{table(heads, rows)}"


def verdict_text(settings: list[Setting], policy: str) -> str:
    """Say in how many settings a policy is better or worse, and what kind of jobs it costs."""
    reports = [setting.report(share) for setting, share in _rows_of(settings)]
    hours = [report.change(policy, "all", "node_hours", relative=True) for report in reports]
    done = [report.change(policy, "all", "turnaround_mean") for report in reports]
    return (
        f"`{policy}` is {whom_text(settings, policy)}. For all jobs together: node-hours "
        f"{_sign_text(hours, 0.002, 'fewer', 'more')} rows; mean turnaround "
        f"{_sign_text(done, 0.1, 'shorter', 'longer')} rows."
    )


def _alike(relative: bool) -> float:
    """Return the change below which a figure counts as unchanged."""
    return 0.002 if relative else 0.1


def _sign_text(changes: list[Range | None], alike: float, less: str, more: str) -> str:
    """Count the changes on which all replays agree."""
    agreed = [change for change in changes if change and change.agrees(alike)]
    fewer = sum(change.likely < 0 for change in agreed)
    return f"{less} in {fewer}, {more} in {len(agreed) - fewer} of {len(changes)}"


def best_text(report: Report, key: str, relative: bool) -> str:
    """Return the policy that lowers a figure most, and by how much."""
    changes = {p: report.change(p, "all", key, relative=relative) for p in POLICIES[1:]}
    likely = {policy: change.likely for policy, change in changes.items() if change}
    best = min(likely, key=lambda policy: likely[policy])
    return f"{best}: {change_text(changes[best], relative)}"


def setting_text(setting: Setting) -> str:
    """Return the results of one trace on one machine."""
    rows, losers = [], []
    for share, policy in product(setting.shares, POLICIES):
        report = setting.report(share)
        if policy == POLICIES[0]:
            figures = [report.over(policy, "all", key).text("{:,.0f}") for _, key, _ in _COLUMNS]
        else:
            figures = [
                change_text(report.change(policy, "all", key, relative=relative), relative)
                for _, key, relative in _COLUMNS
            ]
            losers.append(f"- {100 * share:.0f} %: {report.loser_text(policy)}")
        figures.append(report.over(policy, "all", "slowdown").text("{:.2f}"))
        figures.append(Range(*(100 * v for v in report.over(policy, "utilisation"))).text())
        rows.append([f"{100 * share:.0f} %", policy, *figures])
    heads = ["share", "policy", *(head for head, *_ in _COLUMNS), "slowed by", "utilisation %"]
    parts = [
        f"## {setting.title}\n\nTimes in minutes; `slurm` as it is, the others against it.\n",
        table(heads, rows),
        "Turnaround by size:\n",
        size_table(setting),
        "Who finishes later in every replay:\n",
        *losers,
    ]
    return "\n".join(parts) + "\n"


def sizes(setting: Setting) -> list[str]:
    """Return the groups by size that every seed has, small jobs first."""
    report = setting.report(setting.shares[0])
    labels = [label for label in report.groups("size") if size_change(report, POLICIES[1], label)]
    return sorted(labels, key=_least_nodes)


def _least_nodes(label: str) -> int:
    """Return the fewest nodes of a group by size."""
    return int(label.split("-")[0].split()[0])


def size_table(setting: Setting) -> str:
    """Return how much later jobs of each size finish."""
    rows = []
    for label, share in product(sizes(setting), setting.shares):
        report = setting.report(share)
        changes = [size_change(report, policy, label) for policy in POLICIES[1:]]
        rows.append(
            [label, f"{100 * share:.0f} %", *(change_text(change, True) for change in changes)]
        )
    return table(["nodes", "share", *POLICIES[1:]], rows)


def size_change(report: Report, policy: str, label: str) -> Range | None:
    """Return the relative delay of jobs of a size."""
    path = ("groups", "size", label, "turnaround_mean")
    return report.change(policy, *path, relative=True)


def draw_sizes(settings: list[Setting], figure: Any) -> Any:
    """Draw the delay of jobs of each size, one panel per setting and share."""
    drawn = figure(figsize=(11, 2.6 * len(settings)), layout="constrained")
    width = len(settings[0].shares)
    planes = drawn.subplots(len(settings), width, squeeze=False, sharey="row")
    colours = dict(zip(POLICIES[1:], ("#000000", *COLOURS.values()), strict=False))
    for row, setting in zip(planes, settings, strict=True):
        for axes, share in zip(row, setting.shares, strict=True):
            report, labels = setting.report(share), sizes(setting)
            for k, (policy, colour) in enumerate(colours.items()):
                changes = [size_change(report, policy, label) for label in labels]
                middle = (
                    np.array([[np.nan] * 3 if c is None else c for c in changes]).reshape(-1, 3)
                    * 100
                )
                where = np.arange(len(labels)) + 0.18 * (k - 1.5)
                ends = np.abs(middle[:, [0, 2]] - middle[:, [1]]).T
                axes.errorbar(where, middle[:, 1], ends, fmt="o", ms=3, color=colour, label=policy)
            axes.axhline(0, color="black", linewidth=0.8)
            axes.set_yscale("symlog", linthresh=10)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %")
            axes.set_xticks(range(len(labels)), [x.split()[0] for x in labels], rotation=30)
            axes.set_title(
                f"{setting.machine}, {setting.trace}, {100 * share:.0f} % communication", size=9
            )
            axes.spines[["top", "right"]].set_visible(False)
    drawn.legend(*planes[0][0].get_legend_handles_labels(), loc="outside upper center",
                 frameon=False, ncols=len(colours))  # fmt: skip
    drawn.supxlabel("nodes of the job")
    drawn.supylabel("turnaround, against slurm")
    return drawn


if __name__ == "__main__":
    replays()
