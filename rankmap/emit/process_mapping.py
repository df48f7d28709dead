# SPDX-License-Identifier: Apache-2.0
"""How MPI libraries learn each rank's node, and the limits on the length of that.

MPICH and its descendants learn it from one value, ``PMI_process_mapping``: a
vector of blocks (first node, nodes, ranks on each), the nodes numbered as the
launcher takes them. Blocks are as many as ranks jump from node to node, and
the value has 1,024 bytes, its end included, wherever PMI-1 or PMI-2 carry it.
What is longer is cut, dropped, or ends the job in ``MPI_Init``. Libraries that
speak PMIx (Open MPI) have no such limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.support.array_types import Ints

#: Bytes that a PMI value has, without the zero after it.
PMI_VALUE = 1023


@dataclass(frozen=True, slots=True)
class Mapping:
    """How a library is told which node each rank is on."""

    library: str  # who reads it, in words
    # From the node of each rank, int64 (n,) by the launcher's numbers, to the value
    text: Callable[[Ints], str]
    limit: int  # bytes that it may have
    source: str  # source of that limit


def mapping_vector(node: Ints) -> str:
    """Return ``PMI_process_mapping`` as Slurm, Flux and Cray write it.

    `node` (n,): node of each rank.
    """
    start = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
    ranks = np.diff(np.append(start, len(node)))
    run = node[start]
    new = np.append(True, (run[1:] != run[:-1] + 1) | (ranks[1:] != ranks[:-1]))
    first = np.flatnonzero(new)
    blocks = np.stack([run[first], np.diff(np.append(first, len(run))), ranks[first]], axis=1)
    return f"(vector,{','.join(f'({a},{nodes},{n})' for a, nodes, n in blocks.tolist())})"


def hydra_vector(node: Ints) -> str:
    """Return ``PMI_process_mapping`` as the mpiexec of MPICH 5 writes it.

    A single rank is its node's bare number, and ranks whose nodes come again
    is listed once in brackets, with how often. MPICH 5.0.2 loses ranks after such
    a bracket: one on the node of the rank before it, and, after ``]xK``, those on
    node K-1. Its library then takes ranks to be where they are not.

    `node` (n,): node of each rank. '' where MPICH would write a wrong one.
    """
    nodes = node.tolist()
    words: list[_VectorWord] = []
    began: dict[
        int, tuple[int, _VectorWord]
    ] = {}  # by node: the rank at which its last block begins
    rank = 0
    while rank < len(nodes):
        if rank and nodes[rank] == nodes[rank - 1]:
            if words[-1].repeats:
                return ""
            words[-1].ranks += 1
            rank += 1
            continue
        if _join_last(words, began):
            return ""
        first, block = began.get(nodes[rank], (rank, None))
        times = _count_repeats(nodes, first, rank) if block else 1
        if block and times > 1:
            block.opens = True
            words.append(_VectorWord(-1, repeats=times))
            began.clear()
            rank = first + (rank - first) * times
            continue
        words.append(_VectorWord(nodes[rank]))
        began[nodes[rank]] = rank, words[-1]
        rank += 1
    return "" if _join_last(words, began) else f"(vector{''.join(map(str, words))})"


def _line_vector(node: Ints) -> str:
    """Return Hydra's vector for a host file, in which it takes each line for a node."""
    return hydra_vector(np.append(0, np.cumsum(node[1:] != node[:-1])))


@dataclass(slots=True)
class _VectorWord:
    """A word of Hydra's vector: a block of ranks, or the repeat count of the last bracket."""

    first: int
    nodes: int = 1
    ranks: int = 1
    repeats: int = 0
    opens: bool = False

    def __str__(self) -> str:
        if self.repeats:
            return f"]x{self.repeats}"
        single = self.nodes == self.ranks == 1
        block = str(self.first) if single else f"({self.first},{self.nodes},{self.ranks})"
        return f",{'[' * self.opens}{block}"


def _join_last(words: list[_VectorWord], began: dict[int, tuple[int, _VectorWord]]) -> bool:
    """Merge the last two words if possible; return True if MPICH loses the last."""
    if len(words) < 2:
        return False
    word, last = words[-2:]
    if word.repeats:
        return last.first == word.repeats - 1
    if word.ranks == last.ranks and word.first + word.nodes == last.first:
        word.nodes += 1
        began.pop(last.first, None)
        words.pop()
    return False


def _count_repeats(nodes: list[int], first: int, rank: int) -> int:
    """Return how many times in a row the nodes of ranks `first` … `rank` - 1 occur."""
    size, times = rank - first, 1
    while nodes[rank : rank + size] == nodes[first : first + size]:
        times, rank = times + 1, rank + size
    return times


CRAY_MPICH = Mapping(
    "Cray MPICH",
    mapping_vector,
    PMI_VALUE,
    "cray-mpich 9.1 is reported to abort in MPI_Init beyond it",
)
PMI2 = Mapping("srun --mpi=pmi2", mapping_vector, PMI_VALUE, "PMI2_MAX_VALLEN of Slurm and MPICH")
FLUX = Mapping("flux run", mapping_vector, PMI_VALUE, "SIMPLE_KVS_VAL_MAX of flux-core")
HYDRA = Mapping("MPICH's mpiexec", hydra_vector, PMI_VALUE, "PMI_MAXVALLEN of MPICH")
HYDRA_FILE = Mapping("MPICH's mpiexec -f", _line_vector, PMI_VALUE, "PMI_MAXVALLEN of MPICH")


def parse_limit(text: str | None, mapping: Mapping | None) -> int | None:
    """Return the maximum bytes of a mapping; None for no limit.

    `text`: as ``--mapping-limit`` takes it: a number, ``none``, or None for the library's own.
    `mapping`: None where the library has no such value.
    """
    if text is None:
        return mapping.limit if mapping else None
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31):
        raise UsageError(f"--mapping-limit '{text}' is not a number of bytes", "or none")
    return int(text)
