# SPDX-License-Identifier: Apache-2.0
"""Options that several programs share: words with commas, whole numbers in short."""

import click
import pytest

from nidmap.workloads.options import Number, Words, bench_callback


def test_words_are_known_and_taken_once():
    read = Words(["auto", "vector", "shared"]).convert
    assert read("all", None, None) == ("auto", "vector", "shared")
    assert read("shared,auto,shared", None, None) == ("shared", "auto")
    with pytest.raises(click.BadParameter, match="'pigeons'; choose from auto, vector, shared"):
        read("auto,pigeons", None, None)


@pytest.mark.parametrize(
    ("text", "found"), [("1000000", 10**6), ("2e3", 2000), ("2^20", 1 << 20), ("3^4", 81)]
)
def test_numbers_are_read(text, found):
    assert Number().convert(text, None, None) == found
    assert Number(several=True).convert(f"{text}, 7", None, None) == (found, 7)


@pytest.mark.parametrize("text", ["", "x", "1.5", "-1", "1e", "e5", "2^63", "1e99", "1,2", "²"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(click.BadParameter):
        Number().convert(text, None, None)


def test_bench_callback():
    @click.command("hello")
    @click.option("--name", default="world")
    @bench_callback
    def hello(common, name):
        common.show({"hello": name}, f"hello {name}\n")

    assert sorted(option.name for option in hello.params) == [
        "as_json",
        "name",
        "output",
        "ranks",
        "repeat",
        "time_limit",
    ]
