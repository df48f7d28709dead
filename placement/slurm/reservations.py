"""Slurm's reservations: nodes that only some users and jobs may have."""

from __future__ import annotations

import re
from typing import NamedTuple

from placement.errors import LaunchError, NidmapError, printable
from placement.nodelist import NodeList
from placement.slurm.command import Deadline, ask

__all__ = ["Reservation", "reservations"]

_RECORD = re.compile(r"ReservationName=(?P<name>.*?) StartTime=(?P<start>\S+) (?P<rest>.*)")
_FIELD = re.compile(r"(?:^|\s)(Nodes|Flags|State|PartitionName)=(\S*)")


class Reservation(NamedTuple):
    """One reservation.

    Attributes
    ----------
    name : str
    nodes : NodeList
        Empty where it reserves no nodes (licences, say).
    active : bool
        True where it has begun.
    start : str
        When it begins or began, as Slurm prints it, in UTC.
    maintenance : bool
        True where its nodes show as ``maint``.
    partition : str
        '' where it has none.
    """

    name: str
    nodes: NodeList
    active: bool
    start: str
    maintenance: bool
    partition: str = ""


def reservations(deadline: Deadline | None = None) -> tuple[Reservation, ...]:
    """Return the reservations that Slurm lets us see.

    Parameters
    ----------
    deadline : Deadline or None

    Raises
    ------
    LaunchError
        Slurm is missing, down or slow, or prints what is no reservation.
    """
    answer = ask(["scontrol", "-o", "show", "reservation"], deadline=deadline)
    lines = [line for line in answer.output.splitlines() if line.strip()]
    if not lines or lines[0].startswith("No reservations"):
        return ()
    return tuple(_parse_record(line) for line in lines)


def _parse_record(line: str) -> Reservation:
    r"""Read one record of ``scontrol -o show reservation``.

    Examples
    --------
    >>> r = _parse_record("ReservationName=r1 StartTime=2026-11-21T11:58:57 EndTime=x "
    ...             "Nodes=nid[00020-00021] Flags=MAINT,SPEC_NODES State=ACTIVE")
    >>> r.name, r.nodes, r.active, r.maintenance
    ('r1', NodeList.parse('nid[00020-00021]'), True, True)
    """
    match = _RECORD.match(line)
    if not match:
        what = f"scontrol show reservation printed {printable(line)!r}"
        raise LaunchError(what, "is it Slurm's own scontrol?")
    fields = dict(_FIELD.findall(match["rest"]))
    listed = fields.get("Nodes", "")
    try:
        nodes = NodeList.parse(listed) if listed not in ("", "(null)") else NodeList()
    except NidmapError as error:
        raise LaunchError(f"scontrol show reservation printed bad nodes: {error}") from None
    return Reservation(
        name=match["name"],
        nodes=nodes,
        active=fields.get("State") == "ACTIVE",
        start=match["start"],
        maintenance="MAINT" in fields.get("Flags", "").split(","),
        partition=fields.get("PartitionName", "").removeprefix("(null)"),
    )
