# SPDX-License-Identifier: Apache-2.0
"""``nidmap nodes sort``: nodes in the order of their switches, or along a short ring."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from nidmap.placement.commands.common import machine_option, quiet_option
from nidmap.placement.commands.nodes import piped_text
from nidmap.placement.errors import UsageError
from nidmap.placement.machine_option import machine_from
from nidmap.placement.names.pasted import read_list
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Origin
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap import emit
from nidmap.rankmap.launch.allocation import job_on
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.tours import ring_length, shortest_ring, sort_nodes

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints
    from nidmap.rankmap.score.distance import Distance
    from nidmap.rankmap.tours import Tour

#: Lists of nodes, and the formats of orders that name the nodes.
FORMATS = (
    *("names", "nodelist", "openmpi"),
    *(name for name, kind in emit.FORMATS.items() if kind.nodes_alone),
)


@click.command()
@machine_option
@click.argument("lists", nargs=-1, metavar="[LIST|FILE|-]...")
@click.option("--ring", is_flag=True, help="A closed tour with the fewest hops, like NCCL's rings.")
@click.option("--ppn", metavar="N[,N...]", help="Ranks per node; default: the job's or list's.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="names", show_default=True,
    help="See below.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE, atomically.")
@quiet_option
def sort(
    specs: tuple[str, ...], lists: tuple[str, ...], ring: bool, ppn: str | None,
    form: str, as_json: bool, output: str | None,
) -> None:  # fmt: skip
    """Sort nodes by their switches, neighbours next to each other.

    Without a LIST, and with nothing on standard input, the nodes are those of the
    current job. The block of nodes (leaf switch, group …) that is named
    first comes first, so the first node stays first; on a torus the nodes follow
    a Hilbert curve. With --ring the list is a closed tour with as few hops from
    node to node, and from the last to the first, as can be found; stderr says
    whether fewer are possible. A node keeps its ranks:
    those of the job, or of a host file (slots=8, :8, *8, repeated lines).

    \b
    names       one name per line, each once (the default)
    nodelist    folded, in this order: nid[00045,00012]
    slurm       one line per rank, for SLURM_HOSTFILE (the same: seq)
    deepspeed   host slots=8
    openmpi     rank file of Open MPI
    torchrun    node ranks for torchrun
    hydra       host:8 (the same: intel)

    \b
    nidmap nodes sort --format slurm -o hosts   # inside a job
    nidmap nodes sort -m tree:8x4x2 'nid[00000,00040,00001]'
    scontrol show hostnames | nidmap nodes sort -m tree:8x4x2 --ring -
    nidmap nodes sort -m topology.conf hosts.txt --format deepspeed
    """
    machine = machine_from(specs)
    placement = _read_slots(machine, lists, ppn)
    distance = job_distance(placement)
    tour = shortest_ring(distance) if ring else None
    positions = sort_nodes(distance) if tour is None else tour.order
    ordered = placement.take(positions)
    document = _sort_document(machine, ordered, distance, positions, tour)
    if as_json:
        write_output(to_json(document), output)
    else:
        write_output(_write_sorted(ordered, form, "ring" if ring else "sorted"), output)
    say(_describe_order(document))


def _read_slots(machine: Machine, lists: tuple[str, ...], ppn: str | None) -> Placement:
    """Return nodes and their ranks from the lists, else from standard input, else of the job."""
    texts = [read_list(argument) for argument in lists] or [piped_text()]
    job = None if lists or texts[0][0].strip() else job_on(machine, os.environ)
    if job is not None:
        if job.note:
            say(f"nidmap: {job.words}")
        stated = job.stated_counts()
        counts = stated.tolist() if ppn is None and stated is not None else ppn
        return place_ranks(machine, job.nodes, counts)
    if len(texts) > 1 and any(source for _, source in texts):
        raise UsageError("several files given", "one list is sorted at a time")
    source = texts[0][1]
    return place_ranks(
        machine, " ".join(text for text, _ in texts), ppn, source, repeats=bool(source)
    )


def _write_sorted(placement: Placement, form: str, strategy: str) -> str:
    """Return nodes in a format, each with its ranks if the format includes them."""
    names = placement.names.tolist()
    if form == "names":
        return "".join(f"{name}\n" for name in names)
    if form == "nodelist":
        return f"{NodeList(names).fold()}\n"
    return emit.emit(placement.with_order(None, Origin(strategy)), form, "given")


def _sort_document(
    machine: Machine, placement: Placement, distance: Distance, positions: Ints, tour: Tour | None
) -> dict[str, Any]:
    """Return the order as the document ``nidmap.sorted/1``."""
    names, listed = placement.names.tolist(), np.arange(len(positions))
    least = {} if tour is None else {"least": tour.least}
    before, after = (_count_leaving(distance, order) for order in (listed, positions))
    return {
        "schema": "nidmap.sorted/1",
        "machine": machine.name,
        "ring": tour is not None,
        "count": len(names),
        "nodelist": NodeList(names).fold(),
        "nodes": names,
        "ranks": placement.counts.tolist(),
        "leaving": {name: {"listed": before[name], "sorted": after[name]} for name in before},
        "hops": {
            "listed": ring_length(distance, listed),
            "sorted": ring_length(distance, positions),
            **least,
        },
    }


def _count_leaving(distance: Distance, order: Ints) -> dict[str, int]:
    """Return how many consecutive pairs of nodes cross each level's blocks."""
    blocks = distance.blocks[order, :-1]
    leaving = (blocks[1:] != blocks[:-1]).sum(axis=0).tolist()
    return dict(zip(distance.names, leaving, strict=False))


def _describe_order(document: dict[str, Any]) -> str:
    """Describe the order in one line."""
    nodes, hops = counted(document["count"], "node"), document["hops"]
    if document["ring"]:
        least = hops["least"]
        shortest = "there is no shorter ring" if hops["sorted"] == least else (
            f"no ring has fewer than {least}"
        )  # fmt: skip
        counts = f"{hops['sorted']} hops, {hops['listed']} in the original order"
        return f"ring of {nodes} on {document['machine']}: {counts}; {shortest}"
    crossings: list[str] = []
    for name, row in document["leaving"].items():
        pairs = "" if crossings else f" of {document['count'] - 1} consecutive pairs"
        verb = "crosses" if row["sorted"] == 1 else "cross"
        original = f"{row['listed']} in the original order" if not crossings else row["listed"]
        crossings.append(f"{row['sorted']}{pairs} {verb} a {_block_word(name)} ({original})")
    counts = f": {', '.join(crossings)}" if crossings else ""
    return f"{nodes} of {document['machine']} in switch order{counts}"


def _block_word(name: str) -> str:
    """Return the common name of a level; a tree's switch levels have numbers."""
    if name in ("level1", "leaf"):
        return "leaf switch"
    return f"switch of {name}" if name[-1].isdigit() else name
