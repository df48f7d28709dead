# SPDX-License-Identifier: Apache-2.0
"""What later rooms provide to earlier ones, filled in by the front door, `nidmap`.

A room imports only the rooms before it. Where a command or a planner of one
room is served by a later room, the front door names it in these tables, as
``module:attribute``, and it is imported when it is first asked for. The views
of `Machine`, its own methods, are named there too: they import what imports it.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing typing would take longer than the rest
if TYPE_CHECKING:
    from typing import Any

#: Command -> its location, and its one line of help; in the order in which a job meets them.
COMMANDS: dict[str, tuple[str, str]] = {}

#: The same of ``nidmap nodes``.
NODES: dict[str, tuple[str, str]] = {}

#: Strategies of ``nidmap plan`` that predict a job's time -> their location.
STRATEGIES: dict[str, str] = {}

#: Single functions called by an earlier room or module, by purpose.
SERVICES: dict[str, str] = {}


def load(where: str) -> Any:
    """Import and return the object that ``module`` or ``module:attribute`` names."""
    module, _, attribute = where.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
