# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows besides a command's output: prompts and messages."""

from __future__ import annotations

import re

#: A prompt by what only a prompt has: brackets, user@host or a path before its sign; the sign alone
#: or behind a name, but for ``#``, which begins a comment there.
_PROMPT = re.compile(
    r"[ \t]*(?:"
    r"(\[[\w.\-]+@[\w.\-]+)[^\]\n]{0,80}\][ \t]?[$#%>]|"
    r"([\w.\-]+@[\w.\-]+)(?::[^\s$#%>]*|[ \t][~/][^\s$#%>]*)?[ \t]?[$#%>]|"
    r"([\w.\-]+:)[~/][^\s$#%>]*[ \t]?[$#%>]|"
    r"([\w.\-]*)[$%>]"
    r")(?=[ \t]|$)",
    re.ASCII,
)
#: The first line that is not blank.
_BEGIN = re.compile(r"^[ \t]*[^\s][^\n]*", re.M)
#: Beginnings of messages from shells, ssh or tools on stderr: their name, and a warning or failure.
_MESSAGE = re.compile(r"[ \t]*(?:[\w./\-]+: ){0,3}(?:error|warning): \S.*", re.ASCII | re.I)


def without_prompts(text: str) -> str:
    """Blank out the lines that repeat the prompt with which a text begins."""
    begin = _BEGIN.search(text)
    first = _PROMPT.match(begin[0]) if begin else None
    if first is None:
        return text
    kept = [
        "" if (line := _PROMPT.match(row)) and line.groups() == first.groups() else row
        for row in text.split("\n")
    ]
    return "\n".join(kept)


def without_messages(text: str) -> tuple[str, list[str]]:
    """Blank out the messages at the top of a text, and return them too."""
    lines = text.split("\n", 40)
    messages: list[str] = []
    for number, line in enumerate(lines[:40]):
        if _MESSAGE.fullmatch(line.rstrip("\r")):
            messages.append(line.strip())
            lines[number] = ""
        elif line.strip():
            return ("\n".join(lines) if messages else text), messages
    return text, []
