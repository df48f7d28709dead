# SPDX-License-Identifier: Apache-2.0
"""Recordings that say in which order ranks did things: what waits for what."""

import numpy as np
import pytest

import nidmap
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.recognition.order import chains_of, messages_of, waves_of
from nidmap.rankmap.recording import EVENTS, RecordedOrder, RecordedPhase, Recording
from nidmap.rankmap.recording.file import load_recording, save_recording

#: Words of the events below: post a message or a receive, wait for one, post and wait at once.
SEND, RECEIVE, LAST, SENT, CAME, CALL, CAME_FROM, CANCELLED = EVENTS


def recorded(*ranks, sent=(), groups=(), tags=None, steps=1):
    """Return a recording of ranks that did these events: (word, other rank, bytes, …)."""
    did = [[(EVENTS.index(e[0]), *e[1:], *(0,) * (5 - len(e))) for e in events] for events in ranks]
    rows = sorted({event for events in did for event in events})
    numbers = [rows.index(event) for events in did for event in events]
    events = np.array([[what, peer, group, phase, size] for what, peer, size, group, phase in rows])
    start = np.cumsum([0, *map(len, ranks)])
    tags = None if tags is None else np.concatenate(tags)
    order = RecordedOrder(events, np.array(numbers), start, groups, tags)
    a, b, size = np.array(sent).T
    phase = RecordedPhase("point-to-point", "a+0x1", steps, 1, Traffic(a, b, size, np.ones_like(a)))
    return Recording(len(ranks), 1.0, (phase,), order=order)


#: Rank 0 sends to 1, which sends on to 2: a chain.
CHAIN = recorded(
    [(SEND, 1, 100), (LAST, 1)],
    [(RECEIVE, 0), (LAST, 1), (SEND, 2, 100), (LAST, 1)],
    [(RECEIVE, 1), (LAST, 1)],
    sent=[(0, 1, 100), (1, 2, 100)],
)

#: Two ranks that post a receive early, for the second of two messages, and see it done last.
EARLY = [
    [(RECEIVE, b), (RECEIVE, b), (SEND, b, 10), (SENT, b), (CAME, b), (SEND, b, 20), (SENT, b),
     (CAME, b)]
    for b in (1, 0)
]  # fmt: skip


def waves_in(recording):
    """Return (wave, sender, receiver) of each message."""
    did = messages_of(recording)
    wave = waves_of(did, recording.ranks)
    columns = wave, did.sends.source, did.sends.target
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_a_message_that_waits_for_another_goes_in_a_later_wave():
    assert waves_in(CHAIN) == [(0, 0, 1), (1, 1, 2)]


def test_a_receive_that_is_posted_early_is_waited_for_where_it_is_seen_done():
    recording = recorded(*EARLY, sent=[(0, 1, 30), (1, 0, 30)])
    sends = messages_of(recording).sends
    assert sends.size.tolist() == [10, 20, 10, 20]
    assert sends.step.tolist() == [0, 1, 0, 1]
    assert sends.awaited.tolist() == [0, 1, 0, 1]
    assert [wave for wave, *_ in waves_in(recording)] == [0, 0, 1, 1]


def test_a_receive_from_any_rank_takes_what_no_other_one_does():
    ranks = [
        [(SEND, 2, 8), (LAST, 1)],
        [(SEND, 2, 8), (LAST, 1)],
        [(RECEIVE, -1), (LAST, 1), (RECEIVE, 1), (LAST, 1)],
    ]
    sends = messages_of(recorded(*ranks, sent=[(0, 2, 8), (1, 2, 8)])).sends
    assert dict(zip(sends.source.tolist(), sends.awaited.tolist(), strict=True)) == {0: 0, 1: 1}


def test_a_receive_from_any_rank_takes_what_it_was_seen_to_get():
    ranks = [
        [(SEND, 2, 8), (LAST, 1)],
        [(SEND, 2, 8), (LAST, 1)],
        [(RECEIVE, -1), (RECEIVE, -1), (CAME_FROM, 1), (SEND, 3, 8), (LAST, 1), (CAME_FROM, 0)],
        [(RECEIVE, 2), (LAST, 1)],
    ]
    recording = recorded(*ranks, sent=[(0, 2, 8), (1, 2, 8), (2, 3, 8)])
    sends = messages_of(recording).sends
    awaited = dict(zip(sends.source.tolist(), sends.awaited.tolist(), strict=True))
    assert awaited == {1: 0, 2: 0, 0: 1}
    assert waves_in(recording) == [(0, 0, 2), (0, 1, 2), (1, 2, 3)]


def test_a_receive_that_is_cancelled_takes_nothing():
    ranks = [
        [
            (RECEIVE, 1),
            (RECEIVE, 1),
            (CAME, 1),
            (CANCELLED, 1),
            (RECEIVE, 1),
            (SEND, 1, 8),
            (CAME, 1),
        ],
        [(SEND, 0, 8), (SENT, 0), (RECEIVE, 0), (LAST, 1), (SEND, 0, 8), (LAST, 1)],
    ]  # fmt: skip
    recording = recorded(*ranks, sent=[(0, 1, 8), (1, 0, 16)])
    assert waves_in(recording) == [(0, 1, 0), (1, 0, 1), (2, 1, 0)]


#: Rank 1 posts a receive of tag 2 at first, and gets it last: two messages of tag 1 come before.
ANOTHER_TAG = [
    [(SEND, 1, 8), (LAST, 1), (SEND, 1, 8), (LAST, 1), (SEND, 1, 4), (LAST, 1)],
    [(RECEIVE, 0), (RECEIVE, 0), (LAST, 1), (RECEIVE, 0), (LAST, 1), (CAME, 0)],
]


def test_an_early_receive_of_another_tag_gets_the_message_of_that_tag():
    tags = [[1, 0, 1, 0, 2, 0], [2, 1, 0, 1, 0, 2]]
    recording = recorded(*ANOTHER_TAG, sent=[(0, 1, 20)], tags=tags)
    sends = messages_of(recording).sends
    assert dict(zip(sends.step.tolist(), sends.awaited.tolist(), strict=True)) == {0: 0, 1: 1, 2: 1}


def test_a_receive_of_any_tag_takes_what_it_was_seen_to_get():
    ranks = [
        [(SEND, 1, 8), (LAST, 1), (SEND, 1, 4), (LAST, 1)],
        [(RECEIVE, 0), (RECEIVE, 0), (LAST, 1), (CAME_FROM, 0)],
    ]
    tags = [[7, 0, 9, 0], [-1, 7, 0, 9]]
    sends = messages_of(recorded(*ranks, sent=[(0, 1, 12)], tags=tags)).sends
    assert sends.awaited.tolist() == [0, 0]


def test_ranks_that_wait_for_ever_have_no_waves():
    never = recorded(*[[(RECEIVE, b), (LAST, 1), (SEND, b, 8), (LAST, 1)]
                       for b in (1, 0)], sent=[(0, 1, 8)])  # fmt: skip
    assert waves_of(messages_of(never), 2) is None
    assert chains_of(never) is None


def test_all_wait_at_a_collective():
    members = np.arange(3)
    ranks = [
        [(SEND, 1, 8), (LAST, 1), (CALL, -1, 8, 0, 0), (SEND, 1, 8), (LAST, 1)],
        [(RECEIVE, 0), (LAST, 1), (CALL, -1, 8, 0, 0), (RECEIVE, 0), (LAST, 1)],
        [(CALL, -1, 8, 0, 0), (SEND, 0, 8), (LAST, 1)],
    ]
    waves = waves_in(recorded(*ranks, sent=[(0, 1, 16), (2, 0, 8)], groups=(members,)))
    first, *later = [wave for wave, *_ in waves]
    assert first < min(later)
    assert len(set(later)) == 1


def test_a_halo_is_no_chain_and_a_chain_is_one():
    ring = [[(RECEIVE, (r - 1) % 4), (SEND, (r + 1) % 4, 8), (LAST, 2)] * 5 for r in range(4)]
    pairs = [(r, (r + 1) % 4, 40) for r in range(4)]
    assert chains_of(recorded(*ring, sent=pairs, steps=5)) is None
    assert [step.times for step in chains_of(CHAIN)] == [1.0, 1.0]


@pytest.mark.parametrize("machine", ["torus:4x4,bw=1,latency=0", "minicray:dragonfly"])
def test_a_chain_takes_as_long_as_its_messages_one_after_the_other(tmp_path, machine):
    path = tmp_path / "chain.npz"
    save_recording(CHAIN, str(path))
    asked = Predictor(nidmap.load_machine(machine), Job(f"measured:{path}"))
    alone = tmp_path / "alone.csv"
    alone.write_text("# ranks=3\nsource,target,bytes\n0,1,100\n")
    once = Predictor(nidmap.load_machine(machine), Job(f"matrix:{alone}"))
    rows = np.arange(3)
    if machine.startswith("torus"):
        assert asked.time(asked.place(rows)) == pytest.approx(2 * once.time(once.place(rows)))
    else:
        assert asked.time(asked.place(rows)) > once.time(once.place(rows))


#: Two ranks that exchange at once (MPI_Sendrecv): each waits for as much as there are ranks.
EXCHANGE = recorded(
    *[[(RECEIVE, other), (SEND, other, 8), (LAST, 2)] for other in (1, 0)],
    sent=[(0, 1, 8), (1, 0, 8)],
    tags=[[5, 5, 0], [5, 5, 0]],
)


@pytest.mark.parametrize("recording", [CHAIN, EXCHANGE], ids=["chain", "exchange"])
def test_the_order_is_kept_with_the_recording(tmp_path, recording):
    path = tmp_path / "kept.npz"
    save_recording(recording, str(path))
    kept = load_recording(str(path)).order
    for name in ("events", "numbers", "start", "tags"):
        assert np.array_equal(getattr(kept, name), getattr(recording.order, name))
