"""What stands around a node list where it was copied from: blanked, so that every place is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["jobs_text", "unwrapped"]

_DIRECTIVE = re.compile(r"^\s*#\s?SBATCH\b.*$", re.MULTILINE)
_NODELIST = re.compile(r"(?:^|\s)(?:-w[ =]?|--nodelist[ =])([^\s'\"]+|'[^']*'|\"[^\"]*\")")
_VNODE = re.compile(r"\(([A-Za-z][\w.-]*)((?::[\w.]+=[\w.]+)*)\)\+?")

#: What programs write around names: quotes of shells and of JSON, semicolons.
_MARKS = str.maketrans({'"': " ", "'": " ", "`": " ", ";": ","})


def unwrapped(text: str) -> Iterator[str]:
    """Yield a text without what may stand around its names, each of the same length.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> [other.split() for other in unwrapped("#SBATCH -N 2 -w nid[00001-00002]")]
    [['nid[00001-00002]']]
    >>> [other.split() for other in unwrapped('["n1", "n2"]')]
    [['n1', ',', 'n2']]
    >>> [other.split() for other in unwrapped("(n1:ncpus=4)+(n2:ncpus=4)")]
    [['n1', 'n2']]
    >>> list(unwrapped("n1,n2"))
    []
    """
    for made in (_DIRECTIVE.sub(_of_directive, text), _VNODE.sub(_of_vnode, text), _plain(text)):
        if made != text:
            yield made


def _of_directive(match: re.Match[str]) -> str:
    """Keep the nodes of one ``#SBATCH`` line."""
    line = match.group()
    kept = [" "] * len(line)
    for found in _NODELIST.finditer(line):
        kept[found.start(1) : found.end(1)] = found.group(1)
    return _plain("".join(kept))


def _of_vnode(match: re.Match[str]) -> str:
    """Keep the name in ``(nid00136:ncpus=64)+``."""
    return " " + match.group(1) + " " * (len(match.group()) - len(match.group(1)) - 1)


def _plain(text: str) -> str:
    """Blank quotes, and the brackets of a list of quoted words."""
    if re.match(r"\s*[\[(]\s*['\"]", text) and re.search(r"['\"]\s*,?\s*[\])]\s*$", text):
        first = re.search(r"[\[(]", text)
        last = max(text.rfind("]"), text.rfind(")"))
        if first is not None and last > first.start():
            text = text[: first.start()] + " " + text[first.end() : last] + " " + text[last + 1 :]
    return text.translate(_MARKS)


def jobs_text(text: str) -> str:
    """Return the nodes of all jobs in what ``squeue --json`` printed; '' where it is none.

    Examples
    --------
    >>> jobs_text('{"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "nodes": "n[1-2]"}]}')
    'n[1-2]'
    >>> jobs_text("n1")
    ''
    """
    if not text.lstrip().startswith("{"):
        return ""
    from placement.errors import NidmapError
    from placement.slurm import jobs_in

    try:
        return ",".join(job.nodes.fold() for job in jobs_in(text) or ())
    except NidmapError:
        return ""
