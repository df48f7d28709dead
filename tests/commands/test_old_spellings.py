"""Whoever names what left is told in one line what does it now."""

from pathlib import Path

import pytest

import nidmap
from nidmap.placement.support.old_spellings import GONE

PAGE = Path(__file__).parents[2] / "docs" / "changed.md"

#: What a command needs before it looks at the option that left.
ORDER = ("-m", "torus:2x2", "--ppn", "1", "--pattern", "ring:4")
NEEDED = {
    "machine export": ("-m", "torus:2x2"),
    "plan": ("-m", "torus:2x2", "-N", "2"),
    "order": ORDER,
}


@pytest.mark.parametrize("old", [old for old in GONE if not old.startswith("nidmap.")])
def test_it_is_named_with_what_does_it_now(inside, refused, old):
    needed = NEEDED.get(old.partition(" -")[0], ())
    refused(inside(*old.split(), *needed), 2, f"{old} was removed: {GONE[old]}")


def test_a_name_in_python_is_told_the_same():
    with pytest.raises(AttributeError, match=GONE["nidmap.record"]):
        nidmap.record  # noqa: B018


def test_words_of_the_users_own_program_are_not_ours(inside, refused):
    done = inside("machine", "export", "-m", "torus:2x2", "--odd", "--", "--format", "sls")
    refused(done, 2, "--odd")


def test_the_guide_lists_them_all():
    text = PAGE.read_text()
    assert [line for line in {*GONE.values()} if line not in text] == []
    named = ((old, (f"`{old.split()[-1]}`", f"`{old}`", f"`{old}(")) for old in GONE)
    assert [old for old, spellings in named if not any(s in text for s in spellings)] == []
