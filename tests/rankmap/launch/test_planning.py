"""Planning in a child: what it says counts, whatever becomes of it."""

import os
import signal
import time

import pytest

from placement.errors import UsageError
from rankmap.launch import planning
from rankmap.launch.planning import planned
from rankmap.progress import step


@pytest.fixture(autouse=True)
def handlers():
    """Put back what planning leaves for exec to reset."""
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_last_answer_counts():
    assert planned(lambda: iter([{"a": 1}, {"a": 2}]), 5) == {"a": 2, "last": True}


def test_the_best_so_far_counts_where_no_more_comes_in_time():
    def work():
        yield {"a": 1}
        time.sleep(60)
        yield {"a": 2}

    assert planned(work, 0.3) == {"a": 1, "late": "planning took too long"}


def test_an_answer_that_is_larger_than_a_pipe_arrives_whole():
    big = ["nid00012"] * 100_000
    assert planned(lambda: iter([{"places": big}]), 10)["places"] == big


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (lambda: os._exit(3), "planning broke down"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "planning broke down"),
        (lambda: time.sleep(60), "planning took too long"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: exec("raise SystemExit('\\x1b[31m')"), "SystemExit: \\x1b[31m"),
    ],
)
def test_a_child_that_fails_is_a_reason_and_nothing_more(what, says):
    def work():
        what()
        yield {}

    assert planned(work, 0.3)["unclear"] == says
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_child_that_spins_without_a_word_is_given_up():
    def work():
        while True:
            pass
        yield

    assert planned(work, 1)["unclear"] == "planning took too long"


@pytest.mark.parametrize(("work", "given_up"), [(0.39, False), (0.41, True)])
def test_silence_is_counted_in_work_and_ends_with_a_word(monkeypatch, work, given_up):
    """So a child that a loaded machine seldom lets work keeps its time."""
    spent = [7.0]
    monkeypatch.setattr(planning._Silence, "_worked", lambda self: spent[0])
    silence = planning._Silence(0, 1000.0)
    spent[0] += 1000 * work
    assert silence.too_long() == given_up
    silence.broken()
    assert not silence.too_long()


def test_a_child_that_says_it_goes_on_has_all_the_time():
    def work():
        for _ in range(30):
            time.sleep(0.05)
            step()
        yield {"a": 1}

    assert planned(work, 3)["a"] == 1


def test_an_error_of_ours_says_what_it_says():
    def work():
        raise UsageError("no pattern", "give one")
        yield

    assert planned(work, 5)["unclear"] == "no pattern; give one"


def test_what_the_child_prints_is_dropped(capfd):
    def work():
        os.write(1, b"noise")
        os.write(2, b"noise")
        yield {"a": 1}

    assert planned(work, 5)["a"] == 1
    assert capfd.readouterr() == ("", "")
