"""Recordings that say in which order ranks did things: what waits for what."""

from dataclasses import replace

import numpy as np
import pytest

import nidmap
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.recorded import cheap_stretches, messages_of, waves_of
from nidmap.rankmap.recording import EVENTS, RecordedOrder, RecordedPhase, Recording
from nidmap.rankmap.recording.file import load_recording, save_recording

#: Words of the events below: post a message or a receive, wait for one, post and wait at once.
SEND, RECEIVE, LAST, SENT, CAME, CALL, CAME_FROM, CANCELLED = EVENTS


def recorded(*ranks, sent=(), groups=()):
    """Return a recording of ranks that did these events: (word, other rank, bytes, …)."""
    did = [[(EVENTS.index(e[0]), *e[1:], *(0,) * (5 - len(e))) for e in events] for events in ranks]
    rows = sorted({event for events in did for event in events})
    numbers = [rows.index(event) for events in did for event in events]
    events = np.array([[what, peer, group, phase, size] for what, peer, size, group, phase in rows])
    start = np.cumsum([0, *map(len, ranks)])
    order = RecordedOrder(events, np.array(numbers), start, groups)
    a, b, size = np.array(sent).T
    phase = RecordedPhase("point-to-point", "a+0x1", 1, 1, Traffic(a, b, size, np.ones_like(a)))
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


def test_a_message_that_waits_for_another_goes_in_a_later_wave():
    sends = messages_of(CHAIN, "")
    waves = waves_of(sends, 3)
    assert sends.source.tolist() == [0, 1]
    assert waves.wave.tolist() == [0, 1]


def test_a_receive_that_is_posted_early_is_waited_for_where_it_is_seen_done():
    sends = messages_of(recorded(*EARLY, sent=[(0, 1, 30), (1, 0, 30)]), "")
    assert sends.size.tolist() == [10, 20, 10, 20]
    assert sends.step.tolist() == [0, 1, 0, 1]
    assert sends.taken.tolist() == [0, 0, 0, 0]
    assert sends.awaited.tolist() == [0, 1, 0, 1]
    assert waves_of(sends, 2).wave.tolist() == [0, 1, 0, 1]


def test_a_receive_from_any_rank_takes_what_no_other_one_does():
    ranks = [
        [(SEND, 2, 8), (LAST, 1)],
        [(SEND, 2, 8), (LAST, 1)],
        [(RECEIVE, -1), (LAST, 1), (RECEIVE, 1), (LAST, 1)],
    ]
    sends = messages_of(recorded(*ranks, sent=[(0, 2, 8), (1, 2, 8)]), "")
    assert dict(zip(sends.source.tolist(), sends.awaited.tolist(), strict=True)) == {0: 0, 1: 1}


def test_a_receive_from_any_rank_takes_what_it_was_seen_to_get():
    ranks = [
        [(SEND, 2, 8), (LAST, 1)],
        [(SEND, 2, 8), (LAST, 1)],
        [(RECEIVE, -1), (RECEIVE, -1), (CAME_FROM, 1), (SEND, 3, 8), (LAST, 1), (CAME_FROM, 0)],
        [(RECEIVE, 2), (LAST, 1)],
    ]
    sends = messages_of(recorded(*ranks, sent=[(0, 2, 8), (1, 2, 8), (2, 3, 8)]), "")
    awaited = dict(zip(sends.source.tolist(), sends.awaited.tolist(), strict=True))
    assert awaited == {1: 0, 2: 0, 0: 1}
    assert waves_of(sends, 4).wave.tolist() == [0, 0, 1]


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
    sends = messages_of(recorded(*ranks, sent=[(0, 1, 8), (1, 0, 16)]), "")
    waves = waves_of(sends, 2)
    assert sorted(zip(sends.source.tolist(), waves.wave.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 2),
    ]  # fmt: skip


def test_collectives_are_the_messages_of_a_usual_algorithm():
    members = np.arange(4)
    recording = recorded(*[[(CALL, -1, 8, 0, 1)]] * 4, sent=[(0, 1, 8)], groups=(members,))
    called = RecordedPhase("allreduce", "a+0x2", 1, 4, Traffic.of(members[:0], members[:0], 1.0))
    recording = replace(recording, phases=(*recording.phases, called))
    sends = messages_of(recording, "")
    waves = waves_of(sends, 4)
    pairs = {
        (wave, a, b)
        for wave, a, b in zip(*(c.tolist() for c in (waves.wave, *sends[1:3])), strict=True)
    }
    assert pairs == {(k, rank, rank ^ 1 << k) for rank in range(4) for k in range(2)}


def test_ranks_that_wait_for_ever_are_not_followed():
    never = messages_of(recorded(*[[(RECEIVE, b), (LAST, 1), (SEND, b, 8), (LAST, 1)]
                                   for b in (1, 0)], sent=[(0, 1, 8)]), "")  # fmt: skip
    assert waves_of(never, 2) is None


def test_stretches_of_a_run_stand_for_all_of_it():
    again = [event for _ in range(60) for event in EARLY[0]]
    back = [event for _ in range(60) for event in EARLY[1]]
    sends = messages_of(recorded(again, back, sent=[(0, 1, 1800), (1, 0, 1800)]), "")
    waves = waves_of(sends, 2)
    whole = cheap_stretches(sends, waves, np.ones_like, 10_000)
    assert whole.stand_for == 1
    assert whole.parts[0][1] == 0
    parts = cheap_stretches(sends, waves, np.ones_like, 60)
    counted = sum(len(part.step) - head for part, head in parts.parts)
    assert sum(len(part.step) for part, _ in parts.parts) <= 70
    assert parts.stand_for == pytest.approx(len(sends.step) / counted)
    for part, head in parts.parts:
        assert 0 < head < len(part.step)
        assert part.step.min() == 0
        assert waves_of(part, 2) is not None  # what came before is there: nobody waits for it


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
)


@pytest.mark.parametrize("recording", [CHAIN, EXCHANGE], ids=["chain", "exchange"])
def test_the_order_is_kept_with_the_recording(tmp_path, recording):
    path = tmp_path / "kept.npz"
    save_recording(recording, str(path))
    kept = load_recording(str(path)).order
    for name in ("events", "numbers", "start"):
        assert np.array_equal(getattr(kept, name), getattr(recording.order, name))
