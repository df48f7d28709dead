# SPDX-License-Identifier: Apache-2.0
"""The papers' own experiments in the model, compared with what they publish.

``python -m benchmarks.study -o benchmarks/reports/study.md`` writes its page.
Published figures stand in `benchmarks.study.published`, the parameters that all parts share in
`benchmarks.study.setting`; nothing is fitted to one of the papers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.study.result import Part

#: Paper -> its parts: (module, function).
PARTS = {
    "fft": (
        ("fft", "fft_placement"),
        ("fft", "fft_sensitivity"),
        ("fft", "fft_order"),
        ("fft", "fft_scaling"),
    ),
    "dash": (("dash", "dash"),),
    "isx": (("isx", "isx"),),
    "mpsort": (("mpsort", "mpsort"),),
    "tara": (("tara", "tara"),),
}

#: Parts that take longest are begun first.
SLOW = ("fft_sensitivity", "fft_scaling", "fft_order")


def run(
    paper: str = "", jobs: int = 1, progress: Callable[[str], None] | None = None
) -> list[Part]:
    """Run the experiments of one paper, or of all.

    Parameters
    ----------
    paper : str
        A key of `PARTS`; '' for all.
    jobs : int
        Processes that work at the same time; 1 works in this one.
    progress : callable or None
        Is told the title of each part that is done.

    Returns
    -------
    list of Part
        In the order of `PARTS`, whatever was done first.

    Examples
    --------
    >>> [part.title for part in run("tara")]
    ["Sorting on tara's fat tree"]
    """
    wanted = [part for name in ([paper] if paper else PARTS) for part in PARTS[name]]
    found: dict[str, Part] = {}
    for name, part in _finished_parts(wanted, min(jobs, len(wanted))):
        found[name] = part
        if progress is not None:
            progress(part.title)
    return [found[name] for _, name in wanted]


def _finished_parts(wanted: list[tuple[str, str]], jobs: int) -> Iterator[tuple[str, Part]]:
    """Yield (name, part) as they are completed."""
    if jobs < 2:
        for one in wanted:
            yield _one(one)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed

    first = sorted(wanted, key=lambda one: (one[1] not in SLOW, one[1] != SLOW[0]))
    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(_one, one) for one in first]):
            yield future.result()


def _one(which: tuple[str, str]) -> tuple[str, Part]:
    module, name = which
    part: Part = getattr(import_module(f"benchmarks.study.{module}"), name)()
    return name, part
