"""Ask a launcher where it puts ranks, by a launch whose ranks only say where they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from placement.errors import LaunchError, printable
from placement.support.child import Deadline, run_child
from rankmap.launch import Launch
from rankmap.progress import step

__all__ = ["plain_host", "query_rank_nodes", "rank_printer", "run_query"]

#: What a rank prints: a mark, the rank, the node.
_PLACE = re.compile(r"nidmap-rank ([0-9]{1,9}) ([A-Za-z0-9._-]{1,255})(?![A-Za-z0-9._-])", re.ASCII)


def run_query(
    argv: Sequence[str], env: Mapping[str, str], seconds: float = 10.0, late_hint: str = ""
) -> str:
    """Return what a command prints on stdout; that it is waited for is no standing still.

    Raises
    ------
    LaunchError
        Where it cannot be started, fails, or does not answer in time.
    """
    answer = run_child(argv, env, Deadline(seconds), late_hint=late_hint, on_wait=step)
    if answer.code:
        raise LaunchError(f"{printable(argv[0])} failed when asked (code {answer.code})")
    return answer.output


def plain_host(name: str) -> str:
    """Return a node's name without its domain.

    Examples
    --------
    >>> plain_host("nid00012.cluster")
    'nid00012'
    """
    return name.partition(".")[0]


def rank_printer(variables: Sequence[str], host: str = "$(uname -n)") -> tuple[str, ...]:
    """Return a program that prints each rank's number and node.

    Parameters
    ----------
    variables : sequence of str
        Variables that hold the rank under this launcher, the first that is set.
    host : str
        What names the node, in a shell's words.
    """
    rank = ""
    for name in reversed(variables):
        rank = f"${{{name}:-{rank}}}"
    return ("sh", "-c", f'printf "\\nnidmap-rank %s %s\\n" "{rank}" "{host}"')


def query_rank_nodes(
    launch: Launch, env: Mapping[str, str], ranks: int, seconds: float
) -> list[str]:
    """Run a launch of `rank_printer` and return the node of each rank.

    Raises
    ------
    LaunchError
        Where it fails, or not every rank says once where it is.
    """
    text = run_query(launch.argv, {**env, **launch.env}, seconds, "--patience gives it longer")
    found: dict[int, str] = {}
    for rank, host in _PLACE.findall(text):
        if found.setdefault(int(rank), host) != host:
            raise LaunchError(f"rank {rank} says twice where it is: {found[int(rank)]}, {host}")
    missing = next((r for r in range(ranks) if r not in found), None)
    if missing is not None or len(found) != ranks:
        raise LaunchError(f"{len(found)} of {ranks} ranks said where they are")
    return [found[r] for r in range(ranks)]
