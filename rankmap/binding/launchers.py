"""What makes a launcher bind each rank to its place: options and variables, by launcher.

A launcher counts the ranks of a node by slot (where MPI itself reorders them, as with
MPICH_RANK_ORDER), or by rank (host files): what it binds is its own k-th process of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from placement.lists.folding import fold
from rankmap.binding.places import Place

__all__ = ["LAUNCHERS", "Binding", "bind_options"]


class Binding(NamedTuple):
    """What to add to a launch.

    Attributes
    ----------
    options : tuple of str
        Words for the launcher's command line.
    variables : dict
        To be set in the job's environment.
    """

    options: tuple[str, ...]
    variables: dict[str, str]

    def lines(self) -> str:
        """Return the binding as a shell takes it: variables first, then the options.

        Examples
        --------
        >>> print(Binding(("--cpu-bind=map_cpu:1,0",), {"A": "0:0; 1:1"}).lines(), end="")
        export A='0:0; 1:1'
        --cpu-bind=map_cpu:1,0
        """
        import shlex

        sets = [f"export {name}={shlex.quote(text)}\n" for name, text in self.variables.items()]
        return "".join(sets) + shlex.join(self.options) + "\n"


def bind_options(
    launcher: str, places: Sequence[Place], local: Sequence[int], by_rank: bool = True
) -> Binding:
    """Return what makes a launcher bind.

    Parameters
    ----------
    launcher : str
        One of `LAUNCHERS`.
    places : sequence of Place
        Of a node.
    local : sequence of int
        The place of each process of a node, as the launcher counts them.
    by_rank : bool
        Whether that is the order of their ranks in MPI: only then can Cray MPICH be told
        which local rank uses which NIC; else it is told to take the nearest.

    Examples
    --------
    >>> from rankmap.binding.places import Place
    >>> two = [Place((0, 1), (0, 1), (1,), 0), Place((2, 3), (2, 3), (0,), 0)]
    >>> bind_options("srun", two, [1, 0]).options
    ('--cpu-bind=mask_cpu:0xc,0x3', '--gpu-bind=map:0,1')
    """
    taken = [places[k] for k in local]
    return Binding(LAUNCHERS[launcher](taken), _variables(launcher, taken, by_rank))


def _srun(places: Sequence[Place]) -> tuple[str, ...]:
    masks = ",".join(hex(sum(1 << pu for pu in place.pus)) for place in places)
    return (f"--cpu-bind=mask_cpu:{masks}", *_gpus_of_srun(places))


def _gpus_of_srun(places: Sequence[Place]) -> tuple[str, ...]:
    """Return ``--gpu-bind``: a number a rank, or masks where ranks have several."""
    if not all(place.gpus for place in places):
        return ()
    if all(len(place.gpus) == 1 for place in places):
        return ("--gpu-bind=map:" + ",".join(str(place.gpus[0]) for place in places),)
    masks = (hex(sum(1 << gpu for gpu in place.gpus)) for place in places)
    return (f"--gpu-bind=mask:{','.join(masks)}",)


def _pals(places: Sequence[Place]) -> tuple[str, ...]:
    options = ["--cpu-bind=list:" + ":".join(_ranges(place.pus) for place in places)]
    if all(place.gpus for place in places):  # numbers of the driver, as in its manual's lists
        options.append("--gpu-bind=list:" + ":".join(_ranges(place.gpus) for place in places))
    return tuple(options)


#: What binds, by launcher: from the places of the local ranks.
LAUNCHERS: dict[str, Callable[[Sequence[Place]], tuple[str, ...]]] = {
    "srun": _srun,
    "hydra": lambda places: (
        "-bind-to",
        "user:" + ",".join("+".join(map(str, place.pus)) for place in places),
    ),
    "pals": _pals,
    "aprun": lambda places: ("-cc", ":".join(_ranges(place.pus) for place in places)),
}


def _variables(launcher: str, places: Sequence[Place], by_rank: bool) -> dict[str, str]:
    """Return Cray MPICH's choice of NICs where the nodes have several."""
    nics = sorted({place.nic for place in places})
    if launcher == "hydra" or len(nics) < 2:
        return {}
    if not by_rank:
        return {"MPICH_OFI_NIC_POLICY": "NUMA"}
    ranks = {
        nic: ",".join(str(k) for k, place in enumerate(places) if place.nic == nic) for nic in nics
    }
    mapping = "; ".join(f"{nic}:{ranks[nic]}" for nic in nics)
    return {"MPICH_OFI_NIC_POLICY": "USER", "MPICH_OFI_NIC_MAPPING": mapping}


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as ``0-3,8``.

    Examples
    --------
    >>> _ranges([0, 1, 2, 8, 10, 11])
    '0-2,8,10-11'
    """
    return fold([str(number) for number in numbers]).strip("[]")
