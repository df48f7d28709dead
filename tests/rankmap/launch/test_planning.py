# SPDX-License-Identifier: Apache-2.0
"""Planning in a child: what it says counts, whatever becomes of it."""

import os
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nidmap.placement.errors import UsageError
from nidmap.rankmap.launch import Launch, planning
from nidmap.rankmap.launch.planning import PlannedLaunch, PlanningResult, plan_aside
from nidmap.rankmap.progress import advance


@pytest.fixture(autouse=True)
def handlers():
    """Put back what planning leaves for exec to reset."""
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def planned(word):
    launch = Launch((word, "\udcff"), {"A": word})  # what is no UTF-8 arrives
    return PlannedLaunch(launch, "/x/order", launch, ["nid00012"], word, ["a remark"])


def test_the_last_answer_counts():
    assert plan_aside(lambda: iter([planned("a"), planned("b")]), 5) == PlanningResult(planned("b"))


def test_the_best_so_far_counts_where_no_more_comes_in_time():
    def work():
        yield planned("a")
        time.sleep(60)
        yield planned("b")

    late = "planning makes no progress (raise --patience, now 5)"
    assert plan_aside(work, 5) == PlanningResult(planned("a"), late)


def test_an_answer_that_is_larger_than_a_pipe_arrives_whole():
    big = ["nid00012"] * 100_000
    plan = replace(planned("a"), rank_nodes=big)
    assert plan_aside(lambda: iter([plan]), 10).plan == plan


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (lambda: os._exit(3), "planning failed"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "planning failed"),
        (lambda: time.sleep(1000), "planning makes no progress (raise --patience, now 5)"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: exec("raise SystemExit('\\x1b[31m')"), "SystemExit: \\x1b[31m"),
    ],
)
def test_a_child_that_fails_is_a_reason_and_nothing_more(monkeypatch, what, says):
    started, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: started.append(fork()) or started[-1])

    def work():
        what()
        yield planned("a")

    assert plan_aside(work, 5) == PlanningResult(failure=says)
    with pytest.raises(ChildProcessError):  # it has been waited for
        os.waitpid(started[0], os.WNOHANG)


def test_a_child_that_spins_without_a_word_is_given_up():
    def work():
        while True:
            pass
        yield

    assert plan_aside(work, 5) == PlanningResult(
        failure="planning takes too long (raise --patience, now 5)"
    )


@pytest.fixture
def watch(monkeypatch):
    """A child whose work and whose clock stand in a list: seconds of work, seconds by the clock."""
    took = [0.0, 0.0]
    monkeypatch.setattr(planning._Watch, "_worked", lambda self: took[0])
    monkeypatch.setattr(planning, "time", SimpleNamespace(monotonic=lambda: took[1]))
    return planning._Watch(0, 40.0), took


@pytest.mark.parametrize(
    ("work", "clock", "says"),
    [
        (3.9, 159.0, ""),  # a machine so busy that it seldom lets the child work
        (4.1, 4.1, "planning takes too long"),
        (0.0, 15.0, ""),
        (0.0, 17.0, "planning makes no progress"),
        (0.1, 161.0, "planning takes too long"),
    ],
)
def test_work_is_counted_and_the_clock_only_where_there_is_none(watch, work, clock, says):
    one, took = watch
    took[:] = work, clock
    assert one.too_long() == says


def test_a_word_ends_the_silence_but_not_the_whole(watch):
    one, took = watch
    for _ in range(12):
        took[0] += 3.3
        assert not one.too_long()
        one.hear()
    took[0] += 0.5
    assert one.too_long() == "planning takes too long"


def test_a_child_that_says_it_goes_on_is_heard(monkeypatch):
    heard = []
    monkeypatch.setattr(planning._Watch, "hear", lambda self: heard.append(1))
    said, wait = os.pipe()

    def work():
        advance()
        os.read(said, 1)  # until that was heard
        yield planned("a")

    def too_long(self):
        if len(heard) > 1:  # the first is the beginning
            os.write(wait, b".")
        return ""

    monkeypatch.setattr(planning._Watch, "too_long", too_long)
    assert plan_aside(work, 300).plan == planned("a")


def test_an_error_of_ours_says_what_it_says():
    def work():
        raise UsageError("no pattern", "give one")
        yield

    assert plan_aside(work, 5) == PlanningResult(failure="no pattern; give one")


def test_what_the_child_prints_is_dropped(capfd):
    def work():
        os.write(1, b"noise")
        os.write(2, b"noise")
        yield planned("a")

    assert plan_aside(work, 5).plan == planned("a")
    assert capfd.readouterr() == ("", "")


def test_a_fault_behind_a_plan_does_not_take_it_away():
    def work():
        yield planned("a")
        raise ZeroDivisionError("division by zero")

    result = PlanningResult(planned("a"), "ZeroDivisionError: division by zero")
    assert plan_aside(work, 5) == result
