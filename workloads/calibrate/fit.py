"""From the times of sets of flows to what each class of links carries, and the routing.

A set takes as long as its busiest link: ``t = max over classes of s / f``,
where s are the seconds by the machine's own figures and f is the share of
them that a class really reaches. So ``s / t`` never exceeds f, and equals it
where the class binds: the largest of these ratios over all sets is f, exactly
where there is no noise and the class binds at all. A class that binds nowhere
has its largest ratio where another one binds, which gives it away. Of several
sets in which a class binds, the one counts in which it does so most clearly.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from placement.support.array_types import Floats
from workloads.calibrate.choice import ENOUGH, Table, margins

__all__ = ["Fit", "Network", "fit_network", "fit_shares"]

#: A class is seen where it takes so many times as long as any other one.
CLEAR = 1.04

#: A routing fits as well as the best where its error is no larger than so many times the best's …
WORSE = 1.5

#: … and this much.
SLACK = 0.01

#: A routing whose times are off by more than this in the mean fits nothing.
NONE_FITS = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What each class reaches under one routing.

    Attributes
    ----------
    routing : str
    shares : dict of str to float
        By class that binds somewhere: the share of the machine's own figure.
    sets : dict of str to int
        The set of flows in which each of them carries that much.
    error : float
        Mean of the logarithms by which predicted times are off.
    """

    routing: str
    shares: dict[str, float]
    sets: dict[str, int]
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """All routings fitted to the same times.

    Attributes
    ----------
    fits : tuple of Fit
        The best first.
    alike : tuple of str
        Routings that fit as well as the best, it among them, in the network's
        own order; empty where none fits.
    """

    fits: tuple[Fit, ...]
    alike: tuple[str, ...]

    @property
    def best(self) -> Fit:
        """The fit that counts: the best routing's."""
        return self.fits[0]


def fit_network(table: Table, times: Floats) -> Network:
    """Return how well each routing explains measured times.

    Parameters
    ----------
    table : Table
    times : float64 (flows,)
        Measured seconds for a GB a flow.
    """
    fits = [
        fit_shares(table.seconds[:, r], times, table.classes, routing, table.clean)
        for r, routing in enumerate(table.routings)
    ]
    ranked = sorted(fits, key=lambda fit: fit.error)
    least = ranked[0].error
    near = {fit.routing for fit in fits if fit.error <= WORSE * least + SLACK}
    alike = tuple(name for name in table.routings if name in near)
    first = next(fit for fit in fits if fit.routing in near)
    rest = [fit for fit in ranked if fit is not first]
    return Network((first, *rest), alike if least <= NONE_FITS else ())


def fit_shares(
    seconds: Floats,
    times: Floats,
    classes: Sequence[str],
    routing: str = "",
    clean: Collection[int] | None = None,
) -> Fit:
    """Return what each class reaches, where it binds, and how well that explains the times.

    Parameters
    ----------
    seconds : float64 (flows, classes)
        By the machine's own figures.
    times : float64 (flows,)
    classes : sequence of str
    routing : str
        For the reader.
    clean : collection of int or None
        Sets that shares are read off; None: all. The error is over all.

    Examples
    --------
    >>> found = fit_shares(np.array([[1.0, 0.5], [1.0, 4.0]]), np.array([2.0, 5.0]), ("a", "b"))
    >>> found.shares, found.error
    ({'a': 0.5, 'b': 0.8}, 0.0)
    """
    some = sorted(range(len(times)) if clean is None else clean)
    own = seconds[some]
    ratio = own / times[some, None]
    shares = ratio.max(axis=0, initial=0.0)
    active = [k for k in range(len(classes)) if shares[k] > 0]
    binding = _binding(own, shares, active)
    clear = np.minimum(margins(own), ENOUGH)
    sets = {k: max(binding[k], key=lambda e: float(clear[e, k])) for k in active}
    for k in active:
        shares[k] = ratio[sets[k], k]
    error = 0.0
    if active:
        expected = (seconds[:, active] / shares[active]).max(axis=1)
        used = expected > 0
        error = float(np.abs(np.log(expected[used] / times[used])).mean()) if used.any() else 0.0
    return Fit(
        routing,
        {classes[k]: float(shares[k]) for k in active},
        {classes[k]: some[sets[k]] for k in active},
        error,
    )


def _binding(seconds: Floats, shares: Floats, active: list[int]) -> dict[int, list[int]]:
    """Return in which sets each class binds; classes that bind in none leave `active`.

    Of two classes that could explain the same times, the one goes that takes
    less by the machine's own figures.
    """
    while True:
        expected = seconds[:, active] / shares[active]
        own = margins(expected)
        sets = {k: np.flatnonzero(own[:, i] >= CLEAR).tolist() for i, k in enumerate(active)}
        hidden = [k for k in active if not sets[k]]
        if not hidden:
            return sets
        stated = margins(seconds[:, active]).max(axis=0)
        active.remove(min(hidden, key=lambda k: float(stated[active.index(k)])))
