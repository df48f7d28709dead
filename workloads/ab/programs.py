"""The programs that can be compared, and their options as ``-w name=value``."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workloads.phases import Trial

#: Who talks to whom in programs whose exchange is the same whatever their options.
_PATTERNS = {"workloads.sort": "sort"} | dict.fromkeys(
    ("workloads.isx", "workloads.contention"), "alltoall"
)

#: What a truth value may be written as.
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

__all__ = ["WORKLOADS", "arguments", "maker", "message_of", "pattern_of"]

#: Programs with a trial.
WORKLOADS = ("alltoall", "stencil", "sort", "isx", "fft", "contention")


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
