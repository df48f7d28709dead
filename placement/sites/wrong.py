"""The one way in which the checks of a site file say what is wrong: a key and a sentence."""

from __future__ import annotations

__all__ = ["WrongFigure"]


class WrongFigure(Exception):  # noqa: N818  # not an error of the program: loading turns it into one
    """A figure of a site file cannot be right.

    Parameters
    ----------
    key : str
        The figure's dotted key (``cabinets.absent``, ``partition.GPU.cores``).
    text : str
        What is wrong and what was expected, in one line.
    """

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key
        self.text = text
