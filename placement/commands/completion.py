"""What a shell completes: strategies, sites, patterns; and ``--quiet``, which silences the talk."""

from __future__ import annotations

from collections.abc import Callable

import click

from placement.hooks import SERVICES, load

Completion = Callable[[click.Context, click.Parameter, str], list[str]]

__all__ = ["among", "quiet_option"]

#: What can be completed, and what says its names.
_NAMES = {
    "machine": "placement.site:site_names",
    "planner": "placement.planners:names",
}


def among(kind: str) -> Completion:
    """Return what completes a word to the names of a kind.

    Parameters
    ----------
    kind : str
        ``machine``, ``planner``, or what a later room serves: ``order``, ``pattern``.
    """

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        names: list[str] = load(_NAMES.get(kind) or SERVICES[f"names of {kind}"])()
        return [name for name in names if name.startswith(begun)]

    return complete


quiet_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: value and context.meta.update(quiet=True),
    help="Say nothing on stderr but what went wrong.",
)
