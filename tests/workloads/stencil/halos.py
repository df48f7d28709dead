# SPDX-License-Identifier: Apache-2.0
"""A rank's program: halos on real ranks, against what they must bring."""

import itertools
import random


def parts(world, sizes, run):
    """Run a function on the first ranks of each of these sizes, the others asleep meanwhile."""
    from nidmap.workloads.session import quiet_barrier

    for size in sizes:
        inside = world.rank < size
        part = world.Split(int(not inside), world.rank)
        if inside:
            run(part)
        quiet_barrier(world, asleep=not inside)
        part.Free()


def exchanges(comm):
    """Exchange and verify; then spoil a block and see that it is noticed."""
    from nidmap.placement.errors import NidmapError
    from nidmap.workloads.stencil import make_halo

    grids = ["auto", f"{comm.size}", f"1x{comm.size}x1"]
    for number, (dims, periodic) in enumerate(itertools.product(grids, (False, True))):
        size = random.Random(number).choice([1, 7, 4096, 100_001])
        made = make_halo(comm, bytes=size, dims=dims, periodic=periodic, iterations=3)
        seconds = made.run()
        assert list(seconds) == ["total", "communication"]
        made.verify()
        if periodic or comm.size > 1:
            made.into[...] ^= 1
            try:
                made.verify()
                noticed = False
            except NidmapError:
                noticed = True
            assert noticed
        made.close()


def refusals(comm):
    """Return the errors of what is refused, once all ranks agree on each."""
    from nidmap.placement.errors import NidmapError
    from nidmap.workloads.stencil import make_halo

    cases = {
        "grid": lambda: make_halo(comm, dims="2x5x1"),
        "grid word": lambda: make_halo(comm, dims="wide"),
        "four axes": lambda: make_halo(comm, dims=f"1x1x1x{comm.size}"),
        "memory": lambda: make_halo(comm, bytes=1 << 45),
    }
    said = []
    for name, run in cases.items():
        try:
            run()
            error = None
        except NidmapError as raised:
            error = type(raised).__name__, str(raised)
        everyone = comm.allgather(error)
        assert error is not None, f"{name} was not refused"
        assert len(set(everyone)) == 1, f"{name}: {everyone}"
        said.append((name, *error))
    return said
