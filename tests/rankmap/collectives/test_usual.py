"""Messages of a usual algorithm: who hears of what."""

import pytest

from rankmap.collectives.usual import collective_messages


def pairs(kind, size, root):
    """Return who sends to whom."""
    source, target, _ = collective_messages(kind, size, root)
    return list(zip(source.tolist(), target.tolist(), strict=True))


@pytest.mark.parametrize("size", range(1, 18))
@pytest.mark.parametrize("root", [0, 1, 5])
def test_a_tree_reaches_every_rank_once_and_its_reverse_is_the_reduction(size, root):
    root %= size
    down = pairs("bcast", size, root)
    up = [(to, r) for r, to in pairs("reduce", size, root)]
    assert sorted(to for _, to in down) == [r for r in range(size) if r != root]
    assert sorted(down) == sorted(up)


@pytest.mark.parametrize("size", range(1, 18))
def test_doubling_is_mutual_and_lets_everyone_know(size):
    swapped = set(pairs("allreduce", size, 0))
    assert swapped == {(b, a) for a, b in swapped}
    assert all(a != b and 0 <= b < size for a, b in swapped)
    known = [1 << r for r in range(size)]
    for _ in range(size):
        known = [known[r] | sum_of(known, swapped, r) for r in range(size)]
    assert known == [(1 << size) - 1] * size


def sum_of(known, pairs, rank):
    found = 0
    for a, b in pairs:
        found |= known[a] if b == rank else 0
    return found
