# SPDX-License-Identifier: Apache-2.0
"""The registry: ours by module, others' by entry point, one clear line where there is none."""

import os

import pytest

from nidmap.placement.errors import UsageError
from nidmap.placement.support.registry import Registry, __file__, close_names, modules_in


class Entry:
    """An entry point of another distribution."""

    name = "theirs"
    loaded = 0

    def load(self):
        """Return the thing, and count."""
        Entry.loaded += 1
        return "the thing of others"


@pytest.fixture
def things(monkeypatch):
    found = {"nidmap.things": [Entry()]}
    monkeypatch.setattr("nidmap.placement.support.registry.entry_points", found.__getitem__)
    Entry.loaded = 0
    return Registry(
        "thing", "nidmap.things", "nidmap.placement.topologies", {"curve": "torus"}, ("auto",)
    )


def test_all_names_are_told_once(things):
    assert things.names() == ["auto", "curve", "theirs"]


def test_a_module_that_registers_nothing_is_the_thing(things):
    assert things.find("curve").__name__ == "nidmap.placement.topologies.torus"


def test_what_is_registered_comes_before_all(things):
    things.register("curve")(len)
    assert things.find("curve") is len


def test_what_another_distribution_names_is_found_where_it_is_installed(tmp_path, monkeypatch):
    (tmp_path / "theirs-1.dist-info").mkdir()
    named = "[nidmap.installed]\nplain = os.path:join\n[nidmap.other]\nname = os:sep\n"
    (tmp_path / "theirs-1.dist-info" / "entry_points.txt").write_text(named)
    monkeypatch.syspath_prepend(tmp_path)
    things = Registry(
        "thing", "nidmap.installed", "nidmap.placement.topologies", {"curve": "torus"}
    )
    assert things.names() == ["curve", "plain"]
    assert things.find("plain") is os.path.join


def test_the_thing_of_another_distribution_is_loaded_once(things):
    assert things.find("theirs") == things.find("theirs") == "the thing of others"
    assert Entry.loaded == 1


@pytest.mark.parametrize(
    "name", ["auto", "", "Curve", "nidmap.placement.nodelist", "no\x1b[31mcolour"]
)
def test_what_is_not_there_is_said_with_what_is(things, name):
    with pytest.raises(UsageError) as raised:
        things.find(name)
    assert raised.value.hint == "choose from auto, curve, theirs"
    assert str(raised.value).isprintable()


def test_close_names():
    assert close_names("tora", ["torus", "tree"]) == "did you mean torus?"
    assert close_names("x", ["torus", "tree"]) == "choose from torus, tree"


def test_modules_in():
    assert modules_in(os.path.dirname(__file__))["array-types"] == "array_types"
