# SPDX-License-Identifier: Apache-2.0
"""Registries of named things: our own, one module each, and other distributions'."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nidmap.placement.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


Thing = TypeVar("Thing")


def close_names(word: str, names: Iterable[str]) -> str:
    """Return the hint for an unknown name: similar ones, else all."""
    import difflib

    near = difflib.get_close_matches(word.lower(), names, 3, 0.6)
    return f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(names)}"


def modules_in(folder: str, *others: str, hyphen: str = "-") -> dict[str, str]:
    """Return the modules in a folder by the names of what they define, excluding some.

    A name has `hyphen` where the module's has an underscore.
    """
    files = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    modules = [name[:-3] for name in files if name[0] != "_" and name[:-3] not in others]
    return {module.replace("_", hyphen): module for module in modules}


@cache
def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the names registered by other distributions, reading a file for each."""
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))


class Registry(Generic[Thing]):
    """Named things of one kind, imported on demand.

    A module of ours registers its things with `register`; one that registers
    nothing is the thing itself. Other distributions name theirs under an
    entry point group, as ``name = "package.module:thing"``.

    `kind`: what a message calls such a thing: ``strategy``, ``format`` …. `group`: the entry
    point group. `room`: the package that ours are in. `bundled`: the module of each of ours, in
    that package. `elsewhere`: names that are found by other means, to be named with the rest.
    `page`: the page of the guide that says what there is; '' where none does.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        room: str,
        bundled: Mapping[str, str],
        elsewhere: Iterable[str] = (),
        page: str = "",
    ) -> None:
        self.kind, self.group, self.room, self.bundled = kind, group, room, bundled
        self.elsewhere, self.page = elsewhere, page
        self.known: dict[str, Thing] = {}  # what has been registered or found so far

    def register(self, name: str) -> Callable[[Thing], Thing]:
        """Return a decorator that registers the decorated object as `name`."""

        def registering(thing: Thing) -> Thing:
            self.known[name] = thing
            return thing

        return registering

    def in_order(self) -> Iterator[str]:
        """Yield all names: ours in their order, then other distributions'."""
        ours = dict.fromkeys((*self.bundled, *self.elsewhere))
        yield from ours
        yield from sorted({entry.name for entry in entry_points(self.group)} - ours.keys())

    def names(self) -> list[str]:
        """Return all names sorted, including other distributions'."""
        return sorted(self.in_order())

    def find(self, name: str) -> Thing:
        """Return the object registered as `name`."""
        if name not in self.known:
            entry = self._load(name)
            self.known.setdefault(name, entry)
        return self.known[name]

    def _load(self, name: str) -> Any:
        if name in self.bundled:
            return import_module(f"{self.room}.{self.bundled[name]}")
        for entry in entry_points(self.group):
            if entry.name == name:
                return entry.load()
        what = f"unknown {self.kind} '{name}'"
        error = UsageError(what, f"choose from {', '.join(self.names())}")
        error.page = self.page
        raise error
