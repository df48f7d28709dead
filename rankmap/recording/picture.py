"""A recording's matrix as a picture: who sends how much to whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placement.support.quantities import size_text
from rankmap.compare.plots import picture
from rankmap.recording import Recording

__all__ = ["draw_matrix"]

#: Rows and columns that a picture shows one by one; more ranks share them.
_MOST = 512


def draw_matrix(recording: Recording, form: str) -> bytes:
    """Return the matrix of a recording as ``svg`` or ``png``, logarithmic in the bytes.

    Raises
    ------
    UsageError
        matplotlib is not there.
    """
    total, edge = recording.total(), recording.ranks
    share = -(-edge // _MOST)  # so many ranks share a row
    table = np.zeros((-(-edge // share),) * 2)
    np.add.at(table, (total.source // share, total.target // share), total.bytes)

    def draw(new: Callable[..., Any]) -> Any:
        from matplotlib.colors import LogNorm

        figure = new(figsize=(6.4, 5.4), layout="constrained")
        axes = figure.subplots()
        seen = table[table > 0]
        image = axes.imshow(
            np.ma.masked_equal(table, 0),
            norm=LogNorm(float(seen.min()), float(seen.max())) if len(seen) else None,
            cmap="viridis", extent=(-0.5, edge - 0.5, edge - 0.5, -0.5), interpolation="nearest",
        )  # fmt: skip
        axes.set(xlabel="receiving rank", ylabel="sending rank")
        each = "" if share == 1 else f", {share} ranks a row"
        axes.set_title(f"{edge} ranks, {size_text(float(table.sum()))} in all{each}")
        bar = figure.colorbar(image, label="bytes")
        bar.ax.yaxis.set_major_formatter(lambda value, _: size_text(value))
        return figure

    return picture(form, draw, {})
