"""The experiment as pictures: gains by seed, predicted against measured, links."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["PLOTS", "draw"]

Run = dict[str, Any]

_COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#e08e0b", "#6a4c93", "#5c5c5c")


def draw(name: str, runs: Sequence[Run]) -> bytes:
    """Return one picture as SVG.

    Parameters
    ----------
    name : str
        One of `PLOTS`.
    runs : sequence of dict

    Raises
    ------
    UsageError
        Without matplotlib.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib", "pip install 'nidmap[plot]'") from None
    with mpl.rc_context({"svg.hashsalt": "nidmap", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        PLOTS[name](figure, runs)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _cases(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run["case"] for run in runs))


def _gains(figure: Any, runs: Sequence[Run]) -> None:
    """Draw each seed's ratio with its interval, a panel a case."""
    cases = _cases(runs)
    panels = figure.subplots(1, len(cases), sharey=True, squeeze=False)[0]
    arms = [a for a in dict.fromkeys(arm["arm"] for run in runs for arm in run["arms"])
            if a not in ("slurm", "slurm again")]  # fmt: skip
    for panel, case in zip(panels, cases, strict=True):
        panel.axhline(1.0, color="black", linewidth=0.6)
        for k, name in enumerate(arms):
            found = [(run["seed"], arm) for run in runs if run["case"] == case
                     for arm in run["arms"] if arm["arm"] == name]  # fmt: skip
            if found:
                _points(panel, k, len(arms), name, found)
        panel.set_title(case, fontsize=8)
        panel.set_xlabel("seed")
        panel.set_yscale("log")
        panel.set_yticks([0.5, 1, 2, 3], ["0.5", "1", "2", "3"])
        panel.minorticks_off()
    panels[0].set_ylabel("times as fast as Slurm's choice")
    handles = {h.get_label(): h for p in panels for h in p.get_legend_handles_labels()[0]}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(arms))


def _points(panel: Any, k: int, arms: int, name: str, found: list[tuple[int, Run]]) -> None:
    at = [seed + (k - arms / 2) * 0.12 for seed, _ in found]
    ratio = [arm["ratio"] for _, arm in found]
    low = [max(0.0, arm["ratio"] - (arm["low"] or 0)) for _, arm in found]
    high = [max(0.0, (arm["high"] or arm["ratio"]) - arm["ratio"]) for _, arm in found]
    panel.errorbar(
        at, ratio, [low, high], fmt="o", markersize=3, linewidth=0.8, label=name,
        color=_COLOURS[k % len(_COLOURS)],
    )  # fmt: skip


def _predicted(figure: Any, runs: Sequence[Run]) -> None:
    """Draw measured over predicted ratios."""
    panel = figure.subplots()
    ends = [1.0]
    for k, case in enumerate(_cases(runs)):
        arms = [a for r in runs if r["case"] == case for a in r["arms"]
                if a["arm"] != "slurm" and not a["control"]]  # fmt: skip
        x, y = [a["predicted"] for a in arms], [a["ratio"] for a in arms]
        ends += x + y
        panel.plot(x, y, "o", markersize=3.5, color=_COLOURS[k % len(_COLOURS)], label=case)
    low, high = min(ends) * 0.9, max(ends) * 1.1
    panel.plot([low, high], [low, high], color="black", linewidth=0.6)
    panel.set(xscale="log", yscale="log", xlabel="predicted: times as fast as Slurm's choice",
              ylabel="measured", xlim=(low, high), ylim=(low, high))  # fmt: skip
    ticks = [t for t in (0.4, 0.6, 1, 1.5, 2, 3, 4) if low < t < high]
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_ticks([], minor=True)
    panel.legend(fontsize=8)


def _links(figure: Any, runs: Sequence[Run]) -> None:
    """Draw counted over predicted bytes of every link."""
    panel = figure.subplots()
    high = 1.0
    for k, case in enumerate(_cases(runs)):
        found = [link for r in runs if r["case"] == case for a in r["arms"] for link in a["links"]]
        x = [link["predicted"] / 1e6 for link in found]
        y = [link["counted"] / 1e6 for link in found]
        high = max([high, *x, *y])
        panel.plot(x, y, ".", markersize=3, color=_COLOURS[k % len(_COLOURS)], label=case)
    panel.plot([0, high], [0, high], color="black", linewidth=0.6)
    panel.set(xlabel="predicted with headers, MB a run", ylabel="counted by the kernel, MB a run")
    panel.legend(fontsize=8)


#: Pictures by name.
PLOTS: dict[str, Callable[[Any, Sequence[Run]], None]] = {
    "gains": _gains,
    "predicted": _predicted,
    "links": _links,
}
