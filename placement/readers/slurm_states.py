"""The words in which Slurm prints the state of a node.

``sinfo`` shortens them (``drng``), appends a sign for a flag (``idle*``),
joins several with ``+`` in its complete form and cuts them at the width of a
column. Here they become one lower-case word each, so that the same node reads
the same however it was printed. Words and signs from the manual page of
sinfo and the outputs of Slurm 22.05.
"""

from __future__ import annotations

import re

__all__ = ["is_known", "node_state", "worst"]

#: Short forms (and longer synonyms) and the word for them.
WORDS = {
    "alloc": "allocated", "boot": "reboot", "comp": "completing", "drain": "drained",
    "drng": "draining", "err": "error", "failg": "failing", "futr": "future",
    "maintenance": "maint", "mix": "mixed", "npc": "perfctrs", "plnd": "planned",
    "pow_dn": "powering_down", "pow_up": "powering_up", "power_dn": "powering_down",
    "reboot_issued": "reboot", "reboot_requested": "reboot", "resv": "reserved", "unk": "unknown",
}  # fmt: skip

#: From what a job may use at once to what it can never have.
ORDER = (
    "up", "idle", "planned", "powered_down", "powering_up", "power_up", "power_down",
    "powering_down", "mixed", "allocated", "completing", "perfctrs", "blocked", "reserved",
    "inactive", "maint", "reboot", "draining", "drained", "failing", "fail", "future", "inval",
    "error", "unknown", "down",
)  # fmt: skip

#: Flags that leave a node as free as it was: Slurm wakes what it has put to sleep.
NEUTRAL = {"cloud", "dynamic_norm", "dynamic_future", "powered_down", "powering_up", "power_up"}
NEUTRAL |= {"power_down", "powering_down", "power_drain", "external", "resume", "undrain"}

#: Signs after the word that take an idle node out of service.
SIGNS = {"*": "down", "$": "maint", "@": "reboot", "^": "reboot"}

_PART = re.compile(r"([a-z_]+)([*~#!%$@^-]*)")
_RANK = {word: i for i, word in enumerate(ORDER)}
_LONG = sorted({*ORDER, *WORDS, *NEUTRAL, "not_responding"})


def node_state(text: str) -> tuple[str, bool] | None:
    """Return one word for a state as sinfo prints it, and whether backfill planned it.

    Parameters
    ----------
    text : str
        Such as ``idle``, ``drng*``, ``ALLOCATED+``, ``idle+drain+not_respo``, ``DOWN*+DRAIN``.

    Returns
    -------
    (str, bool) or None
        The word in lower case (``idle~``, a node powered down, is ``idle``:
        Slurm wakes it for a job; ``idle*``, which does not answer, is
        ``down``) and True for planned (``plnd`` or the sign ``-``); None
        where `text` is no state at all.

    Examples
    --------
    >>> node_state("drng*"), node_state("idle-"), node_state("idle@"), node_state("7")
    (('draining', False), ('idle', True), ('reboot', False), None)
    """
    parts = [_PART.fullmatch(part) for part in text.lower().rstrip("+").split("+")]
    words = [_long(part[1]) for part in parts if part]
    if len(words) < len(parts) or not text[0].isalpha():
        return None
    signs = "".join(part[2] for part in parts if part)
    planned = "-" in signs or "planned" in words
    if "not_responding" in words:
        signs += "*"
    counted = [w for w in words if w not in NEUTRAL and w != "not_responding"] or words[:1]
    state = _worst_known(counted)
    if state == "drained" and {"allocated", "mixed", "completing"} & set(counted):
        state = "draining"
    if state in ("idle", "planned"):
        state = max([state, *(SIGNS[s] for s in signs if s in SIGNS)], key=worst)
    return state, planned


def _worst_known(words: list[str]) -> str:
    """Return the worst of some words; one that a column has cut off never makes a node free."""
    known = [w for w in words if w in _RANK]
    if len(known) == len(words) or len(words) == 1:
        return max(words, key=worst)
    state = max(known, key=worst, default="unknown")
    return state if worst(state) > worst("planned") else "unknown"


def is_known(word: str) -> bool:
    """Say whether a full word is one of Slurm's states.

    Examples
    --------
    >>> is_known("drained"), is_known("compute")
    (True, False)
    """
    return word in _RANK or word in NEUTRAL


def worst(word: str) -> int:
    """Return how far from usable a state is; a word that is not known counts as bad.

    Examples
    --------
    >>> worst("idle") < worst("allocated") < worst("drained") < worst("down")
    True
    """
    return _RANK.get(word, _RANK["unknown"])


def _long(word: str) -> str:
    """Return the full word for a short form or one that a column has cut off."""
    if word not in WORDS and word not in _RANK and len(word) >= 5:  # sinfo's widths: 6, 11, 20
        full = {WORDS.get(w, w) for w in _LONG if w.startswith(word)}
        if len(full) == 1:
            return full.pop()
    return WORDS.get(word, word)
