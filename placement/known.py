"""What is known of a machine beside its links: ``known:routing=single,mpi=mpich``.

A word of ``-m`` beside the others. It says how packets are really routed and
which MPI library programs have, so that nothing that plans or predicts has to
take either for unknown. The mini-Cray says both of itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from placement.errors import UsageError, printable

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
    """

    routing: str = ""
    mpi: str = ""

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
                raise UsageError(
                    f"{WORD}routing={self.routing}: no such routing on a {machine.topology.kind}",
                    f"there are {', '.join(possible)}",
                )
        stated = {name: word for name, word in self._asdict().items() if word}
        parameters = {**machine.topology.parameters, **stated}
        topology = replace(machine.topology, parameters=parameters)
        return replace(machine, topology=topology, _cache={})


def parse_known(spec: str) -> Known:
    """Return what a word of ``-m`` says is known.

    Raises
    ------
    UsageError
        Something else than ``routing`` and ``mpi``, one of them twice, or no such MPI.

    Examples
    --------
    >>> parse_known("known:routing=single,mpi=mpich")
    Known(routing='single', mpi='mpich')
    """
    found: dict[str, str] = {}
    for word in spec.removeprefix(WORD).split(","):
        name, _, value = (part.strip() for part in word.partition("="))
        if name not in Known._fields or not value or name in found:
            raise UsageError(
                f"{printable(spec)}: '{printable(word.strip(), 40)}' is not understood",
                "as in known:routing=single,mpi=mpich",
            )
        found[name] = value
    if found.get("mpi", MPIS[0]) not in MPIS:
        raise UsageError(
            f"{printable(spec)}: no MPI '{printable(found['mpi'], 40)}'",
            f"there are {', '.join(MPIS)}",
        )
    return Known(**{name: printable(value, 40) for name, value in found.items()})
