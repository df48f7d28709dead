"""What is said of predicted and counted loads side by side."""

import numpy as np
import pytest

from placement.specs import MINICRAY_BURST
from workloads.minicray.against import CountedLinks, _sentence, segment
from workloads.minicray.net import MTU


def side(wire, counted):
    names = np.array([f"link {k}" for k in range(len(wire))])
    return CountedLinks(names, np.array(wire), np.array(wire), np.array(counted))


def test_a_burst_is_two_segments():
    assert 2 * segment(MTU) == MINICRAY_BURST


@pytest.mark.parametrize(
    ("wire", "counted", "times", "said"),
    [
        ([0.0, 0.0], [5.0, 0.0], 1, "nothing is predicted to leave a node"),
        ([100.0, 0.0], [0.0, 0.0], 1, "nothing has been counted: run it, then ask again"),
        ([100.0, 50.0], [101.0, 52.0], 1,
         "2 links: counts are off by 2.5% in the median, 4.0% at most"),
        ([100.0, 50.0], [300.0, 150.0], 2,
         "2 links: counts are off by 200.0% in the median, 200.0% at most; "
         "they would be those of 6 runs (--times)"),
        ([100.0, 0.0], [0.0, 100.0], 1,
         "1 links: counts are off by 100.0% in the median, 100.0% at most; "
         "links that should be idle have carried 100 bytes: other nodes ran"),
    ],
)  # fmt: skip
def test_the_sentence_says_how_far_counts_are_off_and_why(wire, counted, times, said):
    assert _sentence(side(wire, counted), times) == said


def test_links_with_little_are_not_judged():
    found = side([1000.0, 49.0, 51.0], [1010.0, 490.0, 51.0])
    assert found.judged.tolist() == [True, False, True]
    assert found.error.tolist() == pytest.approx([0.01, 0.0])
