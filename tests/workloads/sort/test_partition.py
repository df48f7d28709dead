"""The whole sort on simulated ranks against one stable sort of everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.workloads.sort.simulated import simulate
from workloads.sort.check import checksum, faults, in_order
from workloads.sort.keys import key_words
from workloads.sort.partition import EXCHANGES, FINALS, KeyedItems, Seen, SortPlan, run
from workloads.sort.trial import count_messages, expect_messages

INTS = ["i1", "u1", "<i2", ">u4", "<i8", ">i8", "<u8"]


@st.composite
def jobs(draw):
    """Items of some dtype on several ranks, how they are sorted, who gets how many."""
    size = draw(st.integers(1, 5))
    kind = np.dtype(draw(st.sampled_from(INTS)))
    info = np.iinfo(kind)
    value = draw(st.sampled_from([st.integers(0, 2), st.integers(info.min, info.max)]))
    keys = [np.array(draw(st.lists(value, max_size=15)), kind) for _ in range(size)]
    total = sum(map(len, keys))
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=size - 1, max_size=size - 1)))
    counts = np.diff([0, *cuts, total]) if draw(st.booleans()) else np.array(list(map(len, keys)))
    shape = draw(st.sampled_from(["plain", "field", "pair", "apart", "function", "columns"]))
    plan = SortPlan(
        True,
        draw(st.sampled_from(["histogram", "bisection"])),
        draw(st.sampled_from(EXCHANGES)),
        draw(st.sampled_from(FINALS)),
        draw(st.sampled_from(["mpsort", "mergesort"])),
    )
    return keys, counts.astype(np.int64), shape, plan


def dressed(shape, keys, start):
    """Return the items with such keys, the key argument, and what tells the items apart."""
    names = np.arange(start, start + len(keys))
    if shape == "plain":
        return keys, None
    if shape in ("apart", "function"):
        items = np.stack([names, -names], axis=1).astype(np.float64)
        return items, keys if shape == "apart" else lambda given: keys
    if shape == "columns":
        wide = keys.astype("i8")
        return names.astype("S7"), np.stack([wide, wide % 3], axis=1)
    items = np.zeros(
        len(keys), [("hi", keys.dtype), ("pad", "u1", (3,)), ("lo", "i8"), ("n", "i4")]
    )
    items["hi"], items["n"], items["lo"] = keys, names, names % 2
    return items, "hi" if shape == "field" else ("hi", "lo")


def expected(shape, given_items):
    items = np.concatenate([items for items, _ in given_items])
    parts = []
    for its, key in given_items:
        parts.append([np.asarray(w) for w in key_words(its, key)[0]])
    words = [np.concatenate([p[w] for p in parts]) for w in range(len(parts[0]))]
    return items[np.lexsort(tuple(words[::-1]))]


@examples(300)
@given(jobs())
def test_every_sort_is_the_stable_sort_of_all(problem):
    keys, counts, shape, plan = problem
    starts = np.cumsum([0, *map(len, keys)])
    each = [dressed(shape, k, int(s)) for k, s in zip(keys, starts[:-1], strict=True)]
    before = [items.copy() for items, _ in each]
    brought = np.array(list(map(len, keys)), np.int64)

    def main(ranks):
        items, key = each[ranks.rank]
        words, fields = key_words(items, key)
        seen = Seen()
        out = run(ranks, KeyedItems(items, words, fields), brought, counts, plan, seen)
        assert out.dtype == items.dtype
        return out

    got = simulate(len(keys), main)
    assert [len(part) for part in got] == counts.tolist()
    assert np.concatenate(got).tobytes() == expected(shape, each).tobytes()
    for (items, _), kept in zip(each, before, strict=True):
        assert items.tobytes() == kept.tobytes()


def test_an_item_crosses_the_network_once_and_log_p_times_when_merged():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**56, (8, 4000)).astype("u8")
    counts = np.full(8, 4000)
    moved = {}
    for algorithm in ("mpsort", "mergesort"):

        def main(ranks, algorithm=algorithm):
            seen = Seen()
            job = KeyedItems(keys[ranks.rank], [keys[ranks.rank]], ())
            run(ranks, job, counts, counts, SortPlan(algorithm=algorithm), seen)
            return seen.moved

        moved[algorithm] = sum(simulate(8, main)) / keys.size
    assert moved["mpsort"] == pytest.approx(7 / 8, abs=0.02)
    assert moved["mergesort"] == pytest.approx(1 / 2 + 3 / 4 + 7 / 8, abs=0.05)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda parts: parts[1].__setitem__(0, 10**6), "out of order"),
        (lambda parts: parts.__setitem__(slice(None), parts[::-1]), "neighbouring ranks"),
        (lambda parts: parts.__setitem__(0, parts[0][:-1]), "another number"),
        (lambda parts: parts[1].__setitem__(1, parts[1][0]), "checksum"),
        (lambda parts: None, None),
    ],
    ids=["disorder", "boundary", "count", "doubled", "right"],
)
def test_the_check_sees_what_is_wrong(wrong, said):
    whole = np.arange(40)
    before = checksum(whole)
    parts = [part.copy() for part in np.split(whole, 4)]
    wrong(parts)

    def main(ranks):
        mine = parts[ranks.rank]
        share = before if ranks.rank == 0 else np.zeros(2, np.uint64)
        return faults(ranks, share, mine, [mine], 10)

    found = simulate(4, main)
    assert all(one == found[0] for one in found)
    if said is None:
        assert found[0] == []
    else:
        assert any(said in text for text in found[0])


def test_the_check_steps_over_empty_ranks():
    parts = [np.array([5]), np.array([], int), np.array([4])]
    found = simulate(
        3,
        lambda r: faults(
            r, checksum(parts[r.rank]), parts[r.rank], [parts[r.rank]], len(parts[r.rank])
        ),
    )
    assert found[0] == ["items of neighbouring ranks are out of order"]


def test_order_with_the_origin_as_last_word_tells_a_stable_sort_from_another():
    keys = np.array([1, 1, 2])
    assert in_order([keys, np.array([0, 1, 0], "u8")]).all()
    assert not in_order([keys, np.array([1, 0, 0], "u8")]).all()


@examples(100)
@given(st.binary(min_size=1, max_size=60), st.integers(0, 59), st.integers(0, 255))
def test_the_checksum_changes_with_any_byte_and_not_with_the_order(raw, at, byte):
    items = np.frombuffer(raw, np.uint8)[:, None].repeat(11, axis=1).copy()
    assert (checksum(items) == checksum(items[::-1].copy())).all()
    other = items.copy()
    other[at % len(items), at % 11] = byte
    assert (checksum(items) == checksum(other)).all() == (items == other).all()


def test_the_load_analysis_agrees_with_an_experiment():
    rng = np.random.default_rng(1)
    size, each = 40, 2000
    sent = np.stack([rng.multinomial(each, [1 / size] * size) for _ in range(size)])
    seen = simulate(size, lambda ranks: count_messages(ranks, sent[ranks.rank]))[0]
    said = expect_messages(size * each, size)
    assert seen.mean == said.mean == 50
    assert seen.deviation == pytest.approx(sent.std())
    assert seen.deviation == pytest.approx(said.deviation, rel=0.06)
    assert seen.largest == sent.max() == pytest.approx(said.largest, rel=0.1)
    assert seen.ranks_imbalance == pytest.approx(sent.sum(0).max() / each - 1)


def test_the_share_of_empty_messages_is_counted():
    rng = np.random.default_rng(2)
    size, each = 30, 18
    sent = np.stack([rng.multinomial(each, [1 / size] * size) for _ in range(size)])
    seen = simulate(size, lambda ranks: count_messages(ranks, sent[ranks.rank]))[0]
    assert (
        seen.empty == (sent == 0).mean() == pytest.approx(expect_messages(540, 30).empty, abs=0.04)
    )


def test_nothing_to_sort_has_no_load():
    assert expect_messages(0, 4).imbalance == 0
    assert simulate(2, lambda r: count_messages(r, np.zeros(2, np.int64)))[0].largest == 0
