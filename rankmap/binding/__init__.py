# SPDX-License-Identifier: Apache-2.0
"""The core, GPU and NIC of each rank of a node, and the options by which a launcher binds them.

The slots of a node are its places here: slot k of a node is the k-th place
(`nidmap.rankmap.binding.arrange`), a set of cores with the GPU and the NIC beside them. An order
says which rank gets which node; `bind` changes only who sits where inside each, and says what
binds: the options of a launcher, or a rankfile.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.hwloc import hardware_of
from nidmap.placement.nodelist import nid_ranges
from nidmap.placement.placement import Placement
from nidmap.rankmap.binding.arrange import Place, arrange_inside
from nidmap.rankmap.emit import document, emit, hosts
from nidmap.rankmap.emit import find as find_format
from nidmap.rankmap.pattern import Pattern


class BoundOrder(NamedTuple):
    """An order with the options that bind its ranks."""

    order: Placement
    places: dict[int, list[Place]]  # those of a node, by its count of ranks
    # Words for the launcher's command line; none for Open MPI, whose rankfile says it all
    options: tuple[str, ...]
    variables: dict[str, str]  # to be set in the job's environment
    remark: str  # its benefit and the basis of it, in one line

    def text(self, form: str, launcher_order: str = "sorted") -> str:
        """Return the order in a format, with ranks' places if it holds them; see `emit`."""
        if form == "json":
            return document.write(self.order, binding=self.document())
        if form == "openmpi":
            cores = {n: [place.cores for place in places] for n, places in self.places.items()}
            return hosts.RANK_FILE.write(self.order, cores)
        return emit(self.order, form, launcher_order)

    def lines(self) -> str:
        """Return the binding for a shell: variables first, then the options."""
        sets = [f"export {name}={shlex.quote(text)}\n" for name, text in self.variables.items()]
        return "".join(sets) + shlex.join(self.options) + "\n"

    def document(self) -> dict[str, Any]:
        """Return the binding as JSON, for nodes that all have the same number of ranks."""
        (places,) = self.places.values()
        return {
            "options": list(self.options),
            "variables": self.variables,
            "places": [place._asdict() for place in places],
        }


def bind(order: Placement, pattern: Pattern, binder: str, form: str) -> BoundOrder:
    """Return the order arranged within its nodes, and the options that bind its ranks.

    `order`: on nodes of a machine. `pattern`: fitted to the order's slots. `binder`: a launcher
    of `BINDERS`, or ``openmpi``, which takes a rankfile. `form`: the format that the order is
    written in (`nidmap.rankmap.emit`).
    """
    if order.machine is None:
        raise UsageError(
            "the hardware inside the nodes is not known without a machine", "use -m MACHINE"
        )
    if (binder == "openmpi") != (form == "openmpi"):
        raise UsageError(
            f"--bind {binder} cannot be used with format {form}", "a rankfile needs --bind openmpi"
        )
    if order.ppn is None and binder != "openmpi":
        raise UsageError(
            f"one list cannot bind nodes with {order.counts.min()} and with"
            f" {order.counts.max()} ranks",
            "a rankfile can: --bind openmpi",
        )
    hardware = hardware_of(order.machine, order.rows)
    by_rank = find_format(form).nodes_alone  # processes of a node are counted by rank
    arranged = arrange_inside(order, pattern, hardware, alike=by_rank)
    options: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    if binder != "openmpi":
        (places,) = arranged.places.values()
        if by_rank:
            places = [places[k] for k in np.argsort(arranged.order.rank_at_slot[: len(places)])]
        options = BINDERS[binder](places)
        variables = _nic_variables(places, by_rank) if binder != "hydra" else {}
    remark = (
        f"inside the nodes ({hardware.sentence()}; {hardware.source}) {arranged.words()}, at "
        f"{', '.join(f'{gbs:g}' for gbs in hardware.bandwidth)} GB/s within an L3, a NUMA domain,"
        f" a socket, a node ({hardware.mark})"
    )
    return BoundOrder(arranged.order, arranged.places, options, variables, remark)


def _srun_options(places: Sequence[Place]) -> tuple[str, ...]:
    """Return srun's CPU masks, and GPU numbers, or masks if ranks have several GPUs."""
    masks = ",".join(hex(sum(1 << pu for pu in place.pus)) for place in places)
    cpus = f"--cpu-bind=mask_cpu:{masks}"
    if not all(place.gpus for place in places):
        return (cpus,)
    if all(len(place.gpus) == 1 for place in places):
        return cpus, "--gpu-bind=map:" + ",".join(str(place.gpus[0]) for place in places)
    masks = ",".join(hex(sum(1 << gpu for gpu in place.gpus)) for place in places)
    return cpus, f"--gpu-bind=mask:{masks}"


def _pals_options(places: Sequence[Place]) -> tuple[str, ...]:
    cpus = "--cpu-bind=list:" + ":".join(nid_ranges(place.pus) for place in places)
    if not all(place.gpus for place in places):
        return (cpus,)
    # numbers of the driver, as in its manual's lists
    return cpus, "--gpu-bind=list:" + ":".join(nid_ranges(place.gpus) for place in places)


#: What makes a launcher bind: its options, from the places of a node's ranks. It counts them
#: by slot where MPI itself reorders them, as with MPICH_RANK_ORDER, or by rank (host files):
#: what it binds is its own k-th process of a node.
BINDERS: dict[str, Callable[[Sequence[Place]], tuple[str, ...]]] = {
    "srun": _srun_options,
    "hydra": lambda places: (
        "-bind-to",
        "user:" + ",".join("+".join(map(str, place.pus)) for place in places),
    ),
    "pals": _pals_options,
    "aprun": lambda places: ("-cc", ":".join(nid_ranges(place.pus) for place in places)),
}


def _nic_variables(places: Sequence[Place], by_rank: bool) -> dict[str, str]:
    """Return Cray MPICH's variables for choosing NICs, if nodes have several.

    Only where a launcher counts processes by their ranks in MPI can it be told which of them
    uses which NIC; else it is told to take the nearest.
    """
    nics = sorted({place.nic for place in places})
    if len(nics) < 2:
        return {}
    if not by_rank:
        return {"MPICH_OFI_NIC_POLICY": "NUMA"}
    ranks = {
        nic: ",".join(str(k) for k, place in enumerate(places) if place.nic == nic) for nic in nics
    }
    mapping = "; ".join(f"{nic}:{ranks[nic]}" for nic in nics)
    return {"MPICH_OFI_NIC_POLICY": "USER", "MPICH_OFI_NIC_MAPPING": mapping}
