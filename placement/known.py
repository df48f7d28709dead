"""What is known of a machine beside its links: ``known:routing=single,mpi=mpich``.

A word of ``-m`` beside the others. It says how packets are really routed, which
MPI library programs have and what one rank can send, so that nothing that plans
or predicts has to take it for unknown. The mini-Cray says all of itself: its links
are so slow that no rank is slower.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from placement.errors import UsageError, printable
from placement.options import Options

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["MPIS", "WORD", "Known", "parse_known"]

#: How the word begins.
WORD = "known:"

#: The MPI libraries that may be named.
MPIS = ("cray-mpich", "mpich", "intel", "mvapich", "openmpi")


class Known(NamedTuple):
    """What is known.

    Attributes
    ----------
    routing : str
        As `placement.network.routings` calls it; '' where it is not known.
    mpi : str
        One of `MPIS`; '' where it is not known.
    process : float
        GB/s that one rank can send, inf where the links alone bind; 0 where it is not known.
    """

    routing: str = ""
    mpi: str = ""
    process: float = 0.0

    def of(self, machine: Machine) -> Machine:
        """Return the machine that knows it too.

        Raises
        ------
        UsageError
            A routing that does not apply to this network.

        Examples
        --------
        >>> from placement.network import routings
        >>> from placement.specs import parse_spec
        >>> routings(Known(routing="single").of(parse_spec("torus:4x4")))
        ('single', 'dimension-order', 'dimension-order-simgrid')
        """
        if self.routing:
            from placement.network import routings

            possible = routings(machine)
            if self.routing not in possible:
                word, kind = printable(self.routing, 40), machine.topology.kind
                text = f"{WORD}routing={word}: no such routing on a {kind}"
                raise UsageError(text, f"there are {', '.join(possible)}")
        stated = {name: word for name, word in self._asdict().items() if word}
        stated |= {"process_mark": "known"} if self.process else {}
        parameters = {**machine.topology.parameters, **stated}
        topology = replace(machine.topology, parameters=parameters)
        return replace(machine, topology=topology, _cache={})


def parse_known(spec: str) -> Known:
    """Return what a word of ``-m`` says is known.

    Raises
    ------
    UsageError
        No field of `Known`, one of them twice, no such MPI, or no bandwidth.

    Examples
    --------
    >>> parse_known("known:routing=single,mpi=mpich")
    Known(routing='single', mpi='mpich', process=0.0)
    """
    options = Options(spec)
    options.only(*Known._fields)
    routing, mpi = options.given.get("routing", ""), options.choice("mpi", MPIS)
    every = options.given.get("process") == "inf"
    return Known(routing, mpi, math.inf if every else options.speed("process", 0.0))
