# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of this process, with the calls of `nidmap.workloads.sort.ranks.Ranks`."""

import threading

import numpy as np


class Board:
    """Where threads lay down what they have for each other."""

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=600)
        self.slots = [None] * size
        self.boards = {}

    def all(self, rank, value):
        """Return what every rank laid down in this call."""
        self.slots[rank] = value
        self.barrier.wait()
        seen = list(self.slots)
        self.barrier.wait()
        return seen


class Simulated:
    """One rank."""

    def __init__(self, board, rank):
        self.board, self.rank, self.size = board, rank, board.size
        self.calls = []

    def _all(self, name, value):
        self.calls.append(name)
        return self.board.all(self.rank, np.array(value, copy=True))

    def total(self, values):
        return np.sum(self._all("total", values), axis=0, dtype=values.dtype)

    def least(self, values):
        return np.min(self._all("least", values), axis=0)

    def before(self, values):
        return np.sum([np.zeros_like(values), *self._all("before", values)[: self.rank]], axis=0)

    def all(self, flag):
        return bool(np.all(self._all("all", flag)))

    def swap(self, rows):
        assert len(rows) == self.size
        return np.stack([theirs[self.rank] for theirs in self._all("swap", rows)])

    def share(self, values):
        return np.stack(self._all("share", values))

    def collect(self, values):
        return np.concatenate(self._all("collect", values))

    def alltoallv(self, items, send, out, receive):
        runs = np.split(items, np.cumsum(send)[:-1])
        self.calls.append("alltoallv")
        assert send.sum() == len(items)
        mine = [theirs[self.rank] for theirs in self.board.all(self.rank, runs)]
        assert [len(run) for run in mine] == receive.tolist()
        out[:] = np.concatenate(mine)

    sparse = alltoallv

    def fits(self, send, receive):
        return True

    def part(self, color):
        colors = self.board.all(self.rank, color)
        members = [r for r in range(self.size) if colors[r] == color]
        if self.rank == members[0]:
            self.board.boards[color] = Board(len(members))
        self.board.barrier.wait()
        part = Simulated(self.board.boards[color], members.index(self.rank))
        self.board.barrier.wait()
        return part

    def free(self):
        pass


def simulate(size, main):
    """Run main(ranks) on so many threads and return what each returned."""
    board, results, errors = Board(size), [None] * size, []

    def body(rank):
        try:
            results[rank] = main(Simulated(board, rank))
        except threading.BrokenBarrierError:
            pass  # another thread's error is the one to tell
        except BaseException as error:
            errors.append(error)
            board.barrier.abort()

    threads = [threading.Thread(target=body, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if errors:
        raise errors[0]
    return results
