"""Whole numbers on the command line, several and in short: ``1e5,2^20``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workloads.options import Param

if TYPE_CHECKING:
    import click

__all__ = ["Number"]


class Number(Param):
    """Whole numbers, several with commas: ``1000000``, ``1e5,1e6,1e7``, ``2^22``."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return them as a tuple of int."""
        if isinstance(value, tuple):
            return value
        return tuple(self._one(part.strip(), param, ctx) for part in str(value).split(","))

    def _one(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        mantissa, mark, power = text.partition("e")
        base = 10
        if not mark:
            mantissa, mark, power = text.partition("^")
            base = int(mantissa) if mark and mantissa.isascii() and mantissa.isdigit() else 10
            mantissa = "1" if mark else mantissa
        parts = (mantissa, power) if mark else (mantissa,)
        if not all(p.isascii() and p.isdigit() and len(p) < 16 for p in parts):
            self.fail(f"{text!r} is no whole number; 1000000, 1e6 or 2^20", param, ctx)
        if mark and int(power) > 62:
            self.fail(f"{text!r} is too large", param, ctx)
        return int(mantissa) * (base ** int(power) if mark else 1)
