# SPDX-License-Identifier: Apache-2.0
"""Formats that name each rank's node: host files.

All but one say nothing of the place inside a node: read back, the ranks of a node are in
ascending places.

One host per line, in rank order, is for SLURM_HOSTFILE (``slurm``), which srun takes with its
arbitrary distribution, and for Open MPI (``seq``), which takes it by
``--map-by seq:OVERSUBSCRIBE:file=F``. Unlike a rankfile it leaves the place inside the node, and
binding, to mpirun. Without OVERSUBSCRIBE, Open MPI 5.0.11 starts nothing, and exits with 0, on
nodes with more ranks than cores. It wants the nodes in its allocation or host file besides.

``host:count`` for each run of consecutive ranks is for Hydra (``hydra``) and Intel MPI
(``intel``). Hydra gives ranks out in the order of the lines of ``-f FILE``, and a host may
stand there again. Two things are lost with it (checked on MPICH 5.0.2): under
``-launcher slurm`` the order of the lines, and for a host that stands there
again the shared memory between its ranks, each entry being a node of its own
to MPICH. Where Hydra knows ``-rankmap``, ``nidmap run`` therefore uses that.
Intel MPI takes the same text as ``-machinefile F``; a host that stands there
again stays one node (checked on Intel MPI 2021). ``-f F``, which looks alike,
ignores the counts, and inside a batch job the scheduler's placement wins over
both unless ``I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=off`` is set.

``host slots=count`` is DeepSpeed's and Horovod's host file, whose nodes count up in the order of
the lines.

``node-rank host nproc-per-node`` is for torchrun, which gives each node a stretch of
consecutive ranks, in the order of the node ranks; orders that are not of this kind cannot be
said to it. The numbers hold with static rendezvous only (``--rdzv-backend static``, the
default): the c10d one sorts the nodes by host name and ignores ``--node-rank``.

Open MPI's rankfile (``openmpi``, ``--map-by rankfile:file=F``) names a slot of the node too:
``rank 0=nid00100 slot=0``. It is a core (its logical number), to which the rank is bound; rank r
at place p of its node gets core p, or those that its place has (`rankmap/binding`). Checked on
Open MPI 5.0.11, which refuses a core that the node does not have and wants the nodes in its
allocation or host file besides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints, Strs
from nidmap.placement.support.hosts import HostNames
from nidmap.rankmap.emit.text import (
    CUT_SHORT,
    BrokenOrderError,
    line_of_entry,
    numbered_lines,
    refuse_broken,
    without_comments,
)

_LINE = re.compile(r"rank\s+([0-9]{1,9})\s*=\s*(\S+?)(?:\s+slots?\s*=\s*(\S+))?", re.ASCII)
_SLOT = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{1,9})(?:[-,][0-9,;:-]*)?", re.ASCII)
_RELATIVE = re.compile(r"\+n([0-9]{1,9})", re.ASCII | re.IGNORECASE)


def host_runs(order: Placement) -> tuple[Strs, Ints]:
    """Return host and length of each run of consecutive ranks on one node."""
    node = order.node_of_rank
    first = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
    return order.names[node[first]], np.diff(np.append(first, len(node)))


def nodes_of(
    hosts: Sequence[str],
    counts: Sequence[int],
    line_of: Callable[[int], int],
    placement: Placement,
    source: str,
) -> Ints:
    """Return the node of each rank, given hosts in rank order.

    `counts`: ranks on each of `hosts`, in a row. `line_of`: line of the file on which an entry of
    `hosts` is; the last for one after them.
    """
    slots = dict(zip(placement.names.tolist(), placement.counts.tolist(), strict=True))
    left, known = dict(slots), HostNames([*slots])
    hosts = [
        str(placement.names[places[0]]) if len(places := known.find(host)) == 1 else host
        for host in hosts
    ]
    for at, (host, count) in enumerate(zip(hosts, counts, strict=True)):
        if host not in left:
            stranger = f"'{host}' is not one of the job's {len(slots)} nodes"
            raise ParseError(source, line_of(at), stranger)
        left[host] -= count
        if left[host] < 0:
            ranks = sum(n for name, n in zip(hosts, counts, strict=True) if name == host)
            fault = f"{host} gets {ranks} ranks and has {slots[host]} slots"
            raise BrokenOrderError(source, line_of(at), fault)
    for host, empty in left.items():
        if empty:
            fault = f"{host} gets {slots[host] - empty} ranks and has {slots[host]} slots"
            text = f"{sum(counts)} ranks for {placement.ranks} slots: {fault}"
            raise BrokenOrderError(source, line_of(len(hosts)), text, CUT_SHORT)
    place = {name: k for k, name in enumerate(slots)}
    return np.repeat([place[host] for host in hosts], counts)


class RankLines:
    """The format with one line per rank, in rank order, holding its host."""

    def write(self, order: Placement) -> str:
        """Return one host per line: line r is the node of rank r."""
        return "\n".join(order.host_of_rank.tolist()) + "\n"

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order in a host file.

        Entries may be split by newline, comma or space, be folded
        (``nid[00045,00012]``) and repeat (``nid00045*3``), as srun reads them.
        """
        hosts = [*NodeList.parse(text, source)] if without_comments(text).strip() else []

        def line_of(at: int) -> int:
            return line_of_entry(text, at, lambda line: NodeList.length_of(line, source))

        node = nodes_of(hosts, [1] * len(hosts), line_of, placement, source)
        return placement.with_ranks_on(node)


class NodeLines(NamedTuple):
    """The format with one line per run of consecutive ranks on a node."""

    line: str  # template: ``{number}`` (of the line, from 0), ``{host}`` and ``{count}``
    pattern: re.Pattern[str]  # for reading, with the same names; no count means one rank
    wanted: str  # the expected form of a line, for messages
    once: str = ""  # what wants each node once, all its ranks in a row; '' where it may come again
    head: str = ""  # lines before the first, of ``{nodes}`` and the ``{first}`` host

    def write(self, order: Placement) -> str:
        """Return the order as text."""
        hosts, counts = host_runs(order)
        if self.once and len(hosts) != len(order.counts):
            torn, times = np.unique(hosts, return_counts=True)
            node = torn[int(np.argmax(times > 1))]
            raise UsageError(
                f"{self.once} gives each node consecutive ranks, and this order does not ({node})",
                "reorder in the program (process groups), or use another launcher",
            )
        rows = enumerate(zip(hosts.tolist(), counts.tolist(), strict=True))
        head = self.head.format(nodes=len(hosts), first=hosts[0])
        lines = (self.line.format(number=k, host=host, count=n) for k, (host, n) in rows)
        return head + "".join(f"{line}\n" for line in lines)

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order in a text."""
        hosts: list[str] = []
        counts: list[int] = []
        lines: list[int] = []
        for at, line in numbered_lines(text):
            match = self.pattern.fullmatch(line)
            if not match:
                raise ParseError(source, at, f"'{line[:40]}' is not {self.wanted}")
            fields = match.groupdict()
            number = int(fields.get("number") or len(hosts))
            if number != len(hosts):
                wrong = f"node rank {number}, {len(hosts)} comes next"
                raise BrokenOrderError(source, at, wrong)
            hosts.append(fields["host"])
            counts.append(int(fields["count"] or 1))
            lines.append(at)
        last = [*lines[-1:], 1][0]
        node = nodes_of(hosts, counts, lambda k: [*lines, last][k], placement, source)
        return placement.with_ranks_on(node)


class _RankfileLine(NamedTuple):
    """One line; socket and core are -1 if no slot is given."""

    rank: int
    host: str
    socket: int
    core: int
    line: int


class RankFile:
    """Open MPI's rankfile: each rank's host and core."""

    def write(
        self, order: Placement, places: Mapping[int, Sequence[Sequence[int]]] | None = None
    ) -> str:
        """Return one line per rank, in rank order.

        `places`: the cores of each place of a node by their logical numbers, by the node's count
        of ranks; None means one each.
        """
        at = (order.slot_of_rank - order.first_slot[order.node_of_rank]).tolist()
        slots = at
        if places:
            counts = order.counts[order.node_of_rank].tolist()
            slots = [",".join(map(str, places[n][p])) for n, p in zip(counts, at, strict=True)]
        rows = enumerate(zip(order.host_of_rank.tolist(), slots, strict=True))
        return "".join(f"rank {r}={host} slot={slot}\n" for r, (host, slot) in rows)

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order in a rankfile.

        The ranks of a node are in the order of the first core of each, or by
        rank where no slots are given. Lines may be in any order; hosts may be
        relative (``+n0`` is the first node of the job).
        """
        rows = [_parse_row(*line, placement, source) for line in numbered_lines(text)]
        ranks = np.array([row.rank for row in rows], dtype=np.int64)
        lines = [*(row.line for row in rows), *(row.line for row in rows[-1:]), 1]
        refuse_broken(ranks, placement.ranks, lines.__getitem__, source)
        rows.sort()
        hosts = [row.host for row in rows]
        node = nodes_of(hosts, [1] * len(rows), lambda at: rows[at].line, placement, source)
        without = [row for row in rows if row.core < 0]
        if len(without) == len(rows):
            return placement.with_ranks_on(node)
        if without:
            fault = f"rank {without[0].rank} has no slot, others have"
            raise ParseError(source, without[0].line, fault)
        where = np.array([(row.core, row.socket) for row in rows]).T
        by_core = np.lexsort((*where, node))
        same = (np.diff(np.stack([*where, node])[:, by_core]) == 0).all(axis=0)
        if same.any():
            first, second = sorted(by_core[int(np.argmax(same)) :][:2].tolist())
            fault = f"ranks {first} and {second} both begin on one core"
            raise BrokenOrderError(source, rows[second].line, fault)
        return placement.with_order(inverse(by_core))


def _parse_row(number: int, line: str, placement: Placement, source: str) -> _RankfileLine:
    match = _LINE.fullmatch(line)
    slot = match and match[3] and _SLOT.fullmatch(match[3])
    if not match or (match[3] and not slot):
        wanted = "rank R=HOST slot=CORE"
        raise ParseError(source, number, f"'{line[:50]}' is not {wanted}")
    host = match[2]
    relative = _RELATIVE.fullmatch(host)
    if relative and int(relative[1]) < len(placement.names):
        host = str(placement.names[int(relative[1])])
    socket, core = (int(slot[1] or 0), int(slot[2])) if slot else (-1, -1)
    return _RankfileLine(int(match[1]), host, socket, core, number)


RANK_FILE = RankFile()
HOST_A_RANK = RankLines()
HOST_COUNT = NodeLines(
    "{host}:{count}",
    re.compile(r"(?P<host>[^\s:#]+)(?::(?P<count>[0-9]{1,9}))?(?:\s.*)?", re.ASCII),
    "a host or host:count",
)
DEEPSPEED = NodeLines(
    "{host} slots={count}",
    re.compile(r"(?P<host>[^\s=#]+)(?:\s+slots\s*=\s*(?P<count>[0-9]{1,9}))?", re.ASCII),
    "a host or host slots=count",
    once="a host file with slots=",
)
TORCHRUN = NodeLines(
    "{number} {host} {count}",
    re.compile(r"(?P<number>[0-9]{1,9})\s+(?P<host>\S+)\s+(?P<count>[0-9]{1,9})", re.ASCII),
    "node-rank host nproc-per-node",
    once="torchrun",
    head="# node-rank host nproc-per-node; on each node, with static rendezvous:\n"
    "# torchrun --nnodes={nodes} --node-rank=RANK --nproc-per-node=N"
    " --master-addr={first} --master-port=PORT\n",
)
