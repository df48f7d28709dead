# SPDX-License-Identifier: Apache-2.0
"""Constraints: Slurm's own reading of an expression, and what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.slurm.nodes import with_features
from tests.real_slurm import needs_slurm, real_slurm

SETS = [",".join(w for w, bit in zip("abc", bits, strict=True) if bit)
        for bits in itertools.product((0, 1), repeat=3)]  # fmt: skip
EXPRESSIONS = (
    "a", "a&b", "a|b", "a,b", "a|b&c", "a&b|c", "c|a&b", "a|b,c", "a&b&c", "a|b|c",
)  # fmt: skip


def chosen(expression, sets=SETS):
    return with_features(expression, np.array(sets)).tolist()


def left_to_right(tokens):
    """Evaluate features and operators as Slurm does, for each of `SETS`."""
    value = [tokens[0] in some.split(",") for some in SETS]
    for operator, word in zip(tokens[1::2], tokens[2::2], strict=True):
        has = [word in some.split(",") for some in SETS]
        both = zip(value, has, strict=True)
        value = [x or y if operator == "|" else x and y for x, y in both]
    return value


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.data())
def test_operators_are_taken_from_the_left(words, data):
    tokens = [words[0]]
    for word in words[1:]:
        tokens += [data.draw(st.sampled_from("&|,")), word]
    assert chosen("".join(tokens)) == left_to_right(tokens)


@needs_slurm
def test_the_same_nodes_as_slurm():
    names = [f"n{i}" for i in range(len(SETS))]
    features = {name: some for name, some in zip(names, SETS, strict=True) if some}
    with real_slurm(names, real=0, features=features) as slurm:
        for expression in EXPRESSIONS:
            command = ["sbatch", "--test-only", "-N1", f"-C{expression}", "--wrap=true"]
            slurms = [
                slurm.run([*command, "-w", name], check=False).returncode == 0 for name in names
            ]
            assert chosen(expression) == slurms, expression


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        *((odd, "is not features joined by & and |") for odd in
          ("a*4", "[a|b]", "!a", "a & b", "", "a&", "&a", "(a|b)&c", "a)", "a\x1b[31m")),
        ("d", "'d', which no node has; choose from a, b, c"),
    ],
)  # fmt: skip
def test_what_is_refused(expression, words):
    with pytest.raises((ParseError, UsageError)) as caught:
        chosen(expression)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@given(st.text(max_size=30))
def test_any_text_is_answered_or_refused(text):
    try:
        found = chosen(text)
    except (ParseError, UsageError) as error:
        found, text = SETS, str(error)
    assert len(found) == len(SETS)
    assert text.isprintable()


def test_nodes_without_features():
    with pytest.raises(ParseError, match="no node has features"):
        chosen("a", ["", ""])
