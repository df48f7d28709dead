"""What is compared: which ranks take part in which order. Worked out on rank 0 alone."""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine

__all__ = ["Arm", "Wish", "arms_of"]

#: A planner and a number of nodes in place of a list.
_PLANNED = re.compile(r"([a-z0-9-]+):([0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison.

    Attributes
    ----------
    name : str
    order : str
        ``default``, a strategy's name, ``random`` or a file.
    nodes : str
        The nodes as they were asked for; '' for all of the job's.
    members : list of int
        World rank of each rank of the arm, in the arm's order.
    control : str
        ``A/A`` or ``random`` for the controls, else ''.
    notes : list of str
        What a user should know of it.
    """

    name: str
    order: str
    nodes: str
    members: list[int]
    control: str = ""
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return the arm as a header keeps it."""
        return {
            "name": self.name,
            "order": self.order,
            "nodes": self.nodes,
            "ranks": len(self.members),
            "members": self.members,
            "control": self.control,
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user asks to be compared.

    Attributes
    ----------
    orders : tuple of str
    nodes : tuple of str
        Each a list of nodes (``name=LIST`` names it), or ``STRATEGY:N``.
    pattern : str
        Who talks to whom; '' where nobody says.
    machine : str
        Machine spec, '' for none.
    controls : bool
    seed : str
    """

    orders: tuple[str, ...] = ("default", "auto")
    nodes: tuple[str, ...] = ()
    pattern: str = ""
    machine: str = ""
    controls: bool = True
    seed: str = "0"


def arms_of(hosts: Sequence[tuple[str, str]], wish: Wish) -> list[Arm]:
    """Return the arms: node sets by orders, the first the one to compare with; then controls.

    Parameters
    ----------
    hosts : sequence of (str, str)
        Of each rank of the world: its processor, and Slurm's name for it.
    wish : Wish

    Raises
    ------
    UsageError
        Nothing to compare, sets of different sizes, an order that needs a
        pattern, an unknown order.

    Examples
    --------
    >>> cyclic = [("a", ""), ("b", "")] * 2
    >>> arms = arms_of(cyclic, Wish(("default", "row-major"), pattern="stencil:4"))
    >>> [(arm.name, arm.members) for arm in arms[:3]]
    [('default', [0, 1, 2, 3]), ('row-major', [0, 2, 1, 3]), ('default again', [0, 1, 2, 3])]
    """
    sets = _sets(hosts, wish)
    arms = [
        _arm(hosts, wish, label, text, members, order)
        for label, text, members in sets
        for order in wish.orders
    ]
    _refuse(arms, wish)
    if wish.controls:
        arms += _controls(arms, wish)
    return [_noted(arm, arms[0]) for arm in arms]


def _refuse(arms: list[Arm], wish: Wish) -> None:
    if len(arms) < 2 and not wish.controls:
        raise UsageError("one arm alone compares nothing", "two --orders, or two --nodes")
    names = [arm.name for arm in arms]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{printable(twice)} is asked for twice")
    sizes = {len(arm.members): arm.name for arm in arms}
    if len(sizes) > 1:
        said = ", ".join(f"{size} on {printable(name)}" for size, name in sizes.items())
        raise UsageError(f"arms of different numbers of ranks: {said}")


def _controls(arms: list[Arm], wish: Wish) -> list[Arm]:
    """Return the first arm again, and its ranks in a random order."""
    first = arms[0]
    again = Arm(f"{first.name} again", first.order, first.nodes, first.members, "A/A")
    if any(arm.order == "random" for arm in arms):
        return [again]
    shuffled = _shuffled(first.members, wish.seed)
    return [again, Arm("random", "random", first.nodes, shuffled, "random")]


def _shuffled(members: Sequence[int], seed: str) -> list[int]:
    rng = random.Random(f"order {seed}")  # noqa: S311  # an order of ranks, no secret
    return rng.sample(list(members), len(members))


def _noted(arm: Arm, first: Arm) -> Arm:
    """Say where an arm is the first one over again: then there is nothing to find."""
    if arm is first or arm.control == "A/A" or arm.members != first.members:
        return arm
    arm.notes.append(f"the same ranks in the same order as {first.name}")
    return arm


def _sets(hosts: Sequence[tuple[str, str]], wish: Wish) -> list[tuple[str, str, list[int]]]:
    """Return (label, text, world ranks) of each node set."""
    if not wish.nodes:
        return [("", "", list(range(len(hosts))))]
    found = []
    for k, text in enumerate(wish.nodes, 1):
        label, equals, rest = text.partition("=")
        label, rest = (label, rest) if equals else ("", text)
        names = set(_names(hosts, rest, wish))
        members = [r for r, pair in enumerate(hosts) if names & set(pair)]
        found.append((label or (rest if _planned(rest) else f"set {k}"), text, members))
    return found


def _planned(text: str) -> tuple[str, int] | None:
    """Return planner and count where the text is ``STRATEGY:N``."""
    match = _PLANNED.fullmatch(text)
    if match is None:
        return None
    from placement.planners import names

    return (match[1], int(match[2])) if match[1] in names() else None


def _names(hosts: Sequence[tuple[str, str]], text: str, wish: Wish) -> list[str]:
    """Return the names of a set's nodes, all of them nodes of the job."""
    here = list(dict.fromkeys(name for pair in hosts for name in pair if name))
    planned = _planned(text)
    if planned is not None:
        return _plan(here, *planned, wish)
    from placement.errors import ParseError
    from placement.nodelist import NodeList

    try:
        names = list(NodeList.parse(text, "--nodes"))
    except ParseError:
        names = []
    if not names or not set(names) <= set(here):
        names = _by_machine(text, here, wish) or names
    lost = [name for name in names if name not in set(here)]
    if lost or not names:
        shown = printable(lost[0] if lost else text)
        raise UsageError(f"--nodes: {shown} is not a node of this job", f"it has {_few(here)}")
    return names


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name, 30) for name in names[:4])
    return shown + (" …" if len(names) > 4 else "")


def _machine(wish: Wish) -> Machine | None:
    specs = (wish.machine or os.environ.get("NIDMAP_MACHINE", "")).split()
    if not specs:
        return None
    from placement.load import load_machine

    return load_machine(*specs)


def _by_machine(text: str, here: Sequence[str], wish: Wish) -> list[str]:
    """Return the names of nodes given as cnames, NIDs or indices, [] where no machine is named."""
    machine = _machine(wish)
    if machine is None:
        return []
    from placement.lookup import rows_of

    return list(machine.names[rows_of(machine, text, source="--nodes")].tolist())


def _plan(here: Sequence[str], strategy: str, count: int, wish: Wish) -> list[str]:
    """Return the nodes of the job that a planner chooses."""
    import numpy as np

    from placement.plan import plan

    machine = _machine(wish)
    if machine is None:
        raise UsageError(f"--nodes {strategy}:{count} needs a machine", "-m or NIDMAP_MACHINE")
    mine = np.isin(machine.names, np.array([name.partition(".")[0] for name in here]))
    chosen = plan(machine, count, strategy=strategy, candidates=mine)
    return list(machine.names[chosen.rows].tolist())


def _arm(
    hosts: Sequence[tuple[str, str]],
    wish: Wish,
    label: str,
    text: str,
    members: list[int],
    order: str,
) -> Arm:
    """Return the arm of a node set in an order."""
    many = len(wish.orders) > 1 or not label
    name = "/".join(part for part in (label, order if many else "") if part)
    if not members:
        raise UsageError(f"no rank runs on {printable(text)}")
    if order == "default":
        return Arm(name, order, text, members)
    if order == "random":
        return Arm(name, order, text, _shuffled(members, wish.seed))
    ranks, notes = _ordered([hosts[rank] for rank in members], order, wish)
    return Arm(name, order, text, [members[k] for k in ranks], "", notes)


def _ordered(
    hosts: Sequence[tuple[str, str]], order: str, wish: Wish
) -> tuple[list[int], list[str]]:
    """Return which of these ranks gets each new rank, by a file or by a strategy."""
    from rankmap.orders import names

    if order not in names():
        if os.path.isfile(order):
            return _from_file(hosts, order), []
        known = ", ".join(["default", "random", *names()])
        raise UsageError(f"no order {printable(order)}", f"a file, or one of {known}")
    if not wish.pattern:
        raise UsageError(
            f"order {order} needs to know who talks to whom, which the workload does not say",
            "--pattern says it",
        )
    from rankmap.runtime.rerank import rerank

    strategy = "" if order == "auto" else order
    ranks, talk = rerank(hosts, wish.pattern, wish.machine or None, strategy)
    return ranks.tolist(), [talk] if talk else []


def _from_file(hosts: Sequence[tuple[str, str]], path: str) -> list[int]:
    """Return the ranks by a file in the format ``slots``; slots node by node in rank order."""
    import numpy as np

    from placement.errors import ParseError
    from rankmap.emit.slots import read
    from rankmap.slots import Slots

    names = list(dict.fromkeys(name for name, _ in hosts))
    number = {name: k for k, name in enumerate(names)}
    node = np.array([number[name] for name, _ in hosts])
    slots = Slots(np.array(names), np.bincount(node))
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError as error:
        raise ParseError(path, 0, f"cannot be read: {error.strerror or error}") from None
    ranks: list[int] = np.argsort(node, kind="stable")[read(text, slots, path).slots].tolist()
    return ranks
