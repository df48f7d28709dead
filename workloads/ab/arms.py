"""What is compared: a program with its options, and which of its ranks stand in which order."""

from __future__ import annotations

import inspect
import os
import random
import re
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from placement.errors import ParseError, UsageError, printable
from workloads.options import named_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placement.machine import Machine
    from workloads.phases import Trial

    Hosts = Sequence[tuple[str, str]]

__all__ = [
    "Arm", "Comparison", "arguments", "arms_of", "maker", "message_of", "node_sets", "pattern_of",
]  # fmt: skip


#: A planner and a number of nodes in place of a list.
_PLANNED = re.compile(r"([a-z0-9-]+):([0-9]{1,7})")


#: Who talks to whom in programs whose exchange is the same whatever their options.
_PATTERNS = {"workloads.sort": "sort"} | dict.fromkeys(
    ("workloads.isx", "workloads.contention"), "alltoall"
)

#: What a truth value may be written as.
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

#: Programs with a trial.
WORKLOADS = ("alltoall", "stencil", "sort", "isx", "fft", "contention")


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
        return {**asdict(self), "ranks": len(self.members)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be measured.

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
        Of random orders.
    workload : str
    options : tuple of str
        ``name=value`` for its trial.
    blocks : int
        Blocks that count; one more before them is dropped as warm-up.
    launch : int
        Which of several launches this is; part of every seed.
    """

    orders: tuple[str, ...] = ("default", "auto")
    nodes: tuple[str, ...] = ()
    pattern: str = ""
    machine: str = ""
    controls: bool = True
    seed: str = "0"
    workload: str = ""
    options: tuple[str, ...] = ()
    blocks: int = 12
    launch: int = 0


def arms_of(hosts: Hosts, asked: Comparison) -> list[Arm]:
    """Return the arms: node sets by orders, the first the one to compare with; then controls.

    Parameters
    ----------
    hosts : sequence of (str, str)
        Of each rank of the world: its processor, and Slurm's name for it.
    asked : Comparison

    Raises
    ------
    UsageError
        Nothing to compare, sets of different sizes, an order that needs a
        pattern, an unknown order.

    Examples
    --------
    >>> cyclic = [("a", ""), ("b", "")] * 2
    >>> arms = arms_of(cyclic, Comparison(("default", "row-major"), pattern="stencil:4"))
    >>> [(arm.name, arm.members) for arm in arms[:3]]
    [('default', [0, 1, 2, 3]), ('row-major', [0, 2, 1, 3]), ('default again', [0, 1, 2, 3])]
    """
    sets = node_sets(hosts, asked)
    arms = [_order_arm(hosts, asked, one, order) for one in sets for order in asked.orders]
    names = [arm.name for arm in arms]
    if len(arms) < 2 and not asked.controls:
        raise UsageError("one arm alone compares nothing", "two --orders, or two --nodes")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{printable(twice)} is asked for twice")
    sizes = {len(arm.members): arm.name for arm in arms}
    if len(sizes) > 1:
        each = ", ".join(f"{size} on {printable(name)}" for size, name in sizes.items())
        raise UsageError(f"arms of different numbers of ranks: {each}")
    first, *others = arms = [*arms, *_controls(arms, asked)] if asked.controls else arms
    for arm in others:
        if arm.members == first.members and arm.control != "A/A":
            arm.notes.append(f"the same ranks in the same order as {first.name}")
    return arms


def _controls(arms: list[Arm], asked: Comparison) -> list[Arm]:
    """Return the first arm again, and its ranks in a random order."""
    first = arms[0]
    again = Arm(f"{first.name} again", first.order, first.nodes, first.members, "A/A")
    if any(arm.order == "random" for arm in arms):
        return [again]
    shuffled = _shuffle(first.members, asked.seed)
    return [again, Arm("random", "random", first.nodes, shuffled, "random")]


def _shuffle(members: Sequence[int], seed: str) -> list[int]:
    rng = random.Random(f"order {seed}")  # noqa: S311  # an order of ranks, no secret
    return rng.sample(list(members), len(members))


def node_sets(hosts: Hosts, asked: Comparison) -> list[tuple[str, str, list[int]]]:
    """Return what each set of nodes is called, how it was asked for, and the world's ranks on it.

    Raises
    ------
    UsageError
        A node that is none of the job's.
    """
    from placement import planners

    if not asked.nodes:
        return [("", "", list(range(len(hosts))))]
    found, machine = [], named_machine(tuple(asked.machine.split()))
    here = list(dict.fromkeys(name for pair in hosts for name in pair if name))
    for k, text in enumerate(asked.nodes, 1):
        label, _, listed = text.rpartition("=")
        planned = _PLANNED.fullmatch(listed)
        if planned and planned[1] in planners.names():
            label = label or listed
            names = _planned_names(here, machine, planned[1], int(planned[2]))
        else:
            names = _node_names(here, machine, listed)
        members = [rank for rank, pair in enumerate(hosts) if set(names) & set(pair)]
        found.append((label or f"set {k}", text, members))
    return found


def _node_names(here: Sequence[str], machine: Machine | None, text: str) -> list[str]:
    """Return the names of a set's nodes, all of them nodes of the job."""
    from placement.lookup import rows_of
    from placement.nodelist import NodeList

    try:
        names = list(NodeList.parse(text, "--nodes"))
    except ParseError:
        names = []
    if machine is not None and not (names and set(names) <= set(here)):  # cnames, NIDs, indices
        names = machine.names[rows_of(machine, text, source="--nodes")].tolist() or names
    unknown = [name for name in names or [text] if name not in here]
    if unknown:
        few = ", ".join(printable(name, 30) for name in here[:4]) + " …" * (len(here) > 4)
        what = f"--nodes: {printable(unknown[0])} is not a node of this job"
        raise UsageError(what, f"it has {few}")
    return names


def _planned_names(
    here: Sequence[str], machine: Machine | None, strategy: str, count: int
) -> list[str]:
    """Return the nodes of the job that a planner chooses."""
    import numpy as np

    from placement.plan import plan

    if machine is None:
        raise UsageError(f"--nodes {strategy}:{count} needs a machine", "-m or NIDMAP_MACHINE")
    mine = np.isin(machine.names, np.array([name.partition(".")[0] for name in here]))
    chosen = plan(machine, count, strategy=strategy, candidates=mine)
    return list(machine.names[chosen.rows].tolist())


def _order_arm(
    hosts: Hosts, asked: Comparison, nodes: tuple[str, str, list[int]], order: str
) -> Arm:
    """Return the arm of a node set in an order."""
    label, text, members = nodes
    name = "/".join(filter(None, (label, order if len(asked.orders) > 1 or not label else "")))
    if not members:
        raise UsageError(f"no rank runs on {printable(text)}")
    if order == "default":
        return Arm(name, order, text, members)
    if order == "random":
        return Arm(name, order, text, _shuffle(members, asked.seed))
    ranks, note = _find_order([hosts[rank] for rank in members], order, asked)
    return Arm(name, order, text, [members[k] for k in ranks], notes=[note] if note else [])


def _find_order(hosts: Hosts, order: str, asked: Comparison) -> tuple[list[int], str]:
    """Return which of these ranks gets each new rank, by a file or a strategy, and a note."""
    from rankmap.orders import names

    if order not in names():
        if os.path.isfile(order):
            return _file_order(hosts, order), ""
        known = ", ".join(["default", "random", *names()])
        raise UsageError(f"no order {printable(order)}", f"a file, or one of {known}")
    if not asked.pattern:
        raise UsageError(
            f"order {order} needs to know who talks to whom, which the workload does not say",
            "--pattern says it",
        )
    from rankmap.runtime.rerank import rerank

    strategy = "" if order == "auto" else order
    found = rerank(hosts, asked.pattern, asked.machine or None, strategy)
    return found.ranks.tolist(), found.warning


def _file_order(hosts: Hosts, path: str) -> list[int]:
    """Return the ranks by a file in the format ``slots``; slots node by node in rank order."""
    import numpy as np

    from placement.support.reading import load
    from rankmap.emit.slots import read
    from rankmap.slots import Slots

    number = {name: k for k, name in enumerate(dict.fromkeys(name for name, _ in hosts))}
    node = np.array([number[name] for name, _ in hosts])
    slots = Slots(np.array(list(number)), np.bincount(node))
    order = read(load(path), slots, path)
    ranks: list[int] = np.argsort(node, kind="stable")[order.slots].tolist()
    return ranks


# --- the program -----------------------------------------------------------------------


def maker(workload: str) -> Callable[..., Trial]:
    """Return ``workloads.<workload>.trial.trial``.

    Raises
    ------
    UsageError
        Where there is no such program, or what it needs is not installed.
    """
    if workload not in WORKLOADS:
        raise UsageError(f"no workload {printable(workload)}", f"one of {', '.join(WORKLOADS)}")
    try:
        made: Callable[..., Trial] = import_module(f"workloads.{workload}.trial").trial
    except ImportError as error:
        raise UsageError(f"workload {workload} cannot be used here: {error}") from None
    return made


def arguments(make: Callable[..., Trial], texts: Sequence[str]) -> dict[str, Any]:
    """Return the options of a trial from ``name=value`` texts.

    Values are read as the trial's own parameter wants them: numbers (with kB,
    KiB … for whole ones), words, true or false, ``a,b,c`` for tuples.

    Raises
    ------
    UsageError
        An option that the trial does not have, or a value that is none.

    Examples
    --------
    >>> from workloads.alltoall.trial import trial
    >>> arguments(trial, ["bytes=4KiB", "kind=alltoallv"])
    {'bytes': 4096, 'kind': 'alltoallv'}
    """
    known = {
        name: parameter
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "seed"
    }
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            hint = f"options: {', '.join(known)}"
            raise UsageError(f"-w {printable(text)} is not an option of the workload", hint)
        found[name] = _value(name, value.strip(), known[name])
    return found


def _value(name: str, text: str, parameter: inspect.Parameter) -> Any:
    """Return a value as the parameter's annotation, or its default, has it."""
    kind, default = str(parameter.annotation).replace(" ", ""), parameter.default
    try:
        if "bool" in kind or isinstance(default, bool):
            return _TRUTH[text.lower()]
        return text if "str" in kind or isinstance(default, str) else _number(text)
    except (KeyError, ValueError):
        raise UsageError(f"-w {name}={printable(text)}: no value of the kind {kind}") from None


def _number(text: str) -> int | float:
    """Return a whole number, with a unit of bytes or without, or another one."""
    import click

    from placement.commands.sending import Bytes

    try:
        return int(Bytes(whole=True).convert(text, None, None))
    except click.BadParameter:
        return float(text)


def pattern_of(make: Callable[..., Trial], ranks: int, options: dict[str, Any]) -> str:
    """Return who talks to whom in a program (see `rankmap.pattern`), '' where it does not say.

    A trial's module may have ``pattern(ranks, **options) -> str``.
    """
    module = inspect.getmodule(make)
    says = getattr(module, "pattern", None)
    if says is None:
        return _PATTERNS.get(getattr(module, "__name__", "").rpartition(".")[0], "")
    taken = inspect.signature(says).parameters
    free = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    return str(says(ranks, **{k: v for k, v in options.items() if free or k in taken}))


def message_of(make: Callable[..., Trial], pattern: str, options: dict[str, Any]) -> float | None:
    """Return the payload of one message in bytes, as predictions count it; None if unsaid.

    A trial's module may have ``message_bytes(pattern, **options) -> float``;
    else its parameter ``bytes`` is taken.
    """
    says = getattr(inspect.getmodule(make), "message_bytes", None)
    if says is not None:
        return float(says(pattern, **options))
    parameter = inspect.signature(make).parameters.get("bytes")
    value = options.get("bytes", parameter.default if parameter is not None else None)
    return float(value) if isinstance(value, (int, float)) else None
