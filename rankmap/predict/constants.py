# SPDX-License-Identifier: Apache-2.0
"""What a predicted time rests on besides loads: one figure for each constant and each unknown.

A site configuration states ``mpi_us`` and ``hop_ns`` with a mark each; a
machine without a configuration gets those of its fabric's kind, as assumed
there. Nothing states what a message costs a processor or a network interface:
those two figures are assumptions for every machine, said in every output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.fabrics import fabric_of, known_fabric
from nidmap.placement.machine import Machine
from nidmap.placement.network import LOSS, ROUTINGS, routings, usual_loss
from nidmap.placement.network.channel_loads import injection_bandwidth

#: Processor time to post and complete one message, us [assumed: LogP's o of interfaces with RDMA].
MESSAGE_US = 0.5

#: Time between two messages of one network interface, us [assumed: 20 million messages a second].
NIC_US = 0.05

#: GB/s at which the ranks of a node exchange data, all together, where nothing states it [assumed];
#: more where its interfaces move more: what they send and receive is read and written there too.
MEMORY_GBS = 20.0

#: How much longer an exchange takes, as a share, where messages of different steps meet on links
#: that are busy all the time and no rank runs ahead; in proportion where they are less busy, and
#: only where routers adapt (Aseeri and others, Table IV).
MEETING = 0.27

#: Share of what sending all at once would win that ranks win by running ahead of each other in the
#: steps of an exchange. On mini-Crays none is off by 3.0 % in the median, all by 1.8 %
#: (docs/minicray.md); Piz Daint's all-to-all on minimal paths lies half way (De Sensi and others).
AHEAD = 0.5

#: Rounds in which a sort finds its splitters [assumed: several probes a round].
ROUNDS = 4

#: Candidates for each splitter in a round [assumed].
PROBES = 16

#: Bytes of one counter of a sort's histogram.
COUNTER = 8


class RunSeconds(NamedTuple):
    """The work of a run besides its communication."""

    work: float = 0.0  # seconds outside MPI that come on top
    # Seconds in MPI that come on top, for other causes: processors that handle messages, ranks that
    # come late
    rest: float = 0.0
    # The part that overlaps with messages in flight, in seconds that it would take alone
    meanwhile: float = 0.0

    def with_messages(self, communication_s: float) -> float:
        """Return the seconds of the run, given those of its messages."""
        return self.work + self.rest + math.hypot(communication_s, self.meanwhile)


#: For anything but a recorded run.
NOTHING = RunSeconds()


@dataclass(frozen=True, slots=True)
class Constants:
    """The figures that are not a link's bandwidth: stated ones, else likely ones.

    A scenario may assume other values of those that nothing states.
    """

    mpi_us: float  # one short message between neighbours, us
    hop_ns: float  # one more link between routers, ns
    message_us: float = MESSAGE_US  # processor time of one message, us
    nic_us: float = NIC_US  # time between two messages of one network interface, us
    # GB/s at which the ranks of one node exchange data through its memory; None means that costs
    # nothing
    memory_gbs: float | None = None
    # Where that is from: ``measured`` or ``published`` by the site, ``given`` on the command line,
    # or ``assumed``
    memory_source: str = "assumed"
    source: str = ""  # source of `mpi_us` and `hop_ns`
    # GB/s that one rank can send at most; None for no limit of its own
    process_gbs: float | None = None
    # The same where a rank sends to a few others alone, if `process_gbs` is only known of
    # all-to-alls
    posted_gbs: float | None = None
    payload: float = 1.0  # share of a router link's bandwidth that is payload, above 0 to 1
    # Least time in us that each further dependent message takes; 0 if not stated: then each takes
    # one latency
    gap_us: float = 0.0
    # Those of ``message_us`` and ``nic_us`` that the machine's configuration states
    measured: frozenset[str] = frozenset()
    # Bytes on the links in addition to those of a recorded message; 0 if not stated
    header: float = 0.0
    # Factor by which links are slower than stated where programs run; None if unknown, as for a
    # mini-Cray that does not say
    slowed: float | None = 1.0
    reach: float = 1.0  # share of the nodes' injection bandwidth that exchanges reach
    meeting: float = 0.0
    nics: int = 1  # the smallest number of interfaces on any node of the machine
    loss: float = LOSS  # relative cost of diverting all bytes
    ahead: float = AHEAD  # how far ranks run ahead from step to step, 0 to 1
    algorithm: str = ""  # '' is the job's
    routing: str = ""  # '' is the machine's
    staged: bool = False  # whether a stencil is exchanged direction by direction
    others: bool = False  # whether jobs that nobody knows send on busy nodes
    # How many times as long as predicted the messages of a recorded program take
    fit: float = 1.0
    run: RunSeconds = NOTHING  # a recorded run's work besides its communication

    @property
    def timeless(self) -> bool:
        """True if everything that does not grow with the bytes is switched off."""
        return not (self.mpi_us or self.hop_ns or self.message_us or self.nic_us)


def machine_constants(machine: Machine) -> Constants:
    """Return a machine's constants: those stated (`nidmap.placement.options`), else its fabric's.

    Where no latency is stated it is the fabric's; one of 0 switches off every term that does
    not grow with the bytes: latency, hops, messages and the rounds of a histogram. Memory is
    `MEMORY_GBS`, or what a node's interfaces move where that is more, where nothing states it and
    the machine has the bandwidth of any link.
    """
    stated = machine.topology.parameters
    inside, memory_source = _memory_bandwidth(machine)
    process, memory = (None if gbs == math.inf else gbs for gbs in (stated.get("process"), inside))
    of_exchanges = stated.get("process_mark", "assumed") == "assumed"
    adapts = machine.topology.kind in ROUTINGS and routings(machine)[0] == "adaptive"
    figures: dict[str, Any] = {
        "memory_gbs": memory, "memory_source": memory_source,
        "process_gbs": process, "posted_gbs": None if of_exchanges else process,
        "payload": stated.get("payload", 1.0),
        "reach": 1.0 if "header" in stated else known_fabric(machine.topology).reach,
        "header": stated.get("header", 0.0),
        "meeting": MEETING if adapts else 0.0,
        "slowed": stated.get("slowed", None if "header" in stated else 1.0),
        "nics": int(np.maximum(1, (machine.router >= 0).sum(axis=1)).min(initial=1)),
        "loss": usual_loss(machine),
        "ahead": AHEAD,
    }  # fmt: skip
    latency = stated.get("latency")
    if latency == 0:
        return Constants(0.0, 0.0, 0.0, 0.0, source="switched off", **figures)
    fabric = fabric_of(machine.topology)
    mpi = float(stated.get("mpi_us", fabric.mpi_us)) if latency is None else latency
    source = f"site {machine.site}" if "mpi_us" in stated else f"assumed, as on {fabric.title}"
    source = stated.get("latency_source", source)
    posting = {name: float(stated[name]) for name in ("message_us", "nic_us") if name in stated}
    figures |= {
        **posting,
        "gap_us": float(stated.get("gap_us", 0.0)),
        "measured": frozenset(posting),
    }
    if latency is not None:
        source = f"latency as given, hops: {source}"
    return Constants(mpi, float(stated.get("hop_ns", fabric.hop_ns)), source=source, **figures)


def _memory_bandwidth(machine: Machine) -> tuple[float, str]:
    """Return GB/s of copies within a node, inf if they cost nothing, and its provenance."""
    stated = machine.topology.parameters
    if "memory" in stated:
        return stated["memory"], stated.get("memory_mark", "stated")
    listed = [] if machine.links is None else machine.links.bandwidth.tolist()
    if any(math.isfinite(gbs) for gbs in (*machine.topology.bandwidth.values(), *listed)):
        interfaces = injection_bandwidth(machine)
        moved = float(interfaces.max(initial=0.0, where=np.isfinite(interfaces)))
        return max(MEMORY_GBS, moved), "assumed"
    # With unlimited links, copies would dominate the time.
    return math.inf, "as on links of unknown bandwidth"


def histogram_s(
    ranks: int,
    nodes: int,
    injection: float,
    known: Constants,
    rounds: int = ROUNDS,
    probes: int = PROBES,
) -> float:
    """Return the seconds of a sort's histogram rounds.

    Each round is an Allreduce of `probes` counters per splitter: twice log2 of
    the nodes messages, and twice the counters through a node's interface.

    `injection`: GB/s of a node; inf where unlimited. `rounds`, `probes`: MP-sort has 56 rounds of
    two Allreduces of one counter.
    """
    if known.timeless or ranks < 2:
        return 0.0
    turns = 2 * math.ceil(math.log2(nodes)) * (known.mpi_us + known.hop_ns * 1e-3) * 1e-6
    return rounds * (turns + 2 * COUNTER * probes * (ranks - 1) / (injection * 1e9))
