"""Shapes and numbers in bulk against a slow reading of one line after the other."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import ParseError
from placement.readers import rows

NUMBER = re.compile(r"(?<![^ \t\r])0x[0-9a-f]+|[0-9]+")


def slow_shape(line):
    # 00x1f and 8x1 are not hexadecimal numbers: their shapes must not look like one
    line = re.sub(r"((?<=[^ \t\r])0|[1-9])x(?=[0-9a-f])", r"\1?", line, flags=re.I)
    squeezed = NUMBER.sub(lambda m: "0x0" if "x" in m[0] else "0", line.lower())
    return re.sub(r"[ \t\r]+", " ", squeezed).removeprefix(" ")


def slow_numbers(line):
    found = [int(word, 16 if "x" in word else 10) for word in NUMBER.findall(line.lower())]
    return [n if n <= rows.BIGGEST else -1 for n in found]


def same(found, line):
    """Compare numbers; one with many leading zeros may be taken for too big."""
    words = NUMBER.findall(line.lower())
    wanted = slow_numbers(line)
    return len(found) == len(wanted) and all(
        x == y or (x == -1 and len(word) > 10)
        for x, y, word in zip(found, wanted, words, strict=True)
    )


LINES = st.lists(
    st.one_of(
        st.text(alphabet="09afxXcz :-+.\t\r#é", max_size=30),
        st.from_regex(r"[ ]*[0-9]{1,9}  0x[0-9a-f]{1,8} c[0-9]-[0-9]", fullmatch=True),
    ),
    max_size=8,
)


@given(lines=LINES)
def test_shapes_and_numbers_are_those_of_a_slow_reading(lines):
    text = "\n".join(lines)
    whole = list(rows.split_by_shape(text, ""))
    wanted = lines if text else []
    if text.endswith("\n"):
        wanted = lines[:-1]
    assert [shape for piece in whole for shape in piece.shapes] == [slow_shape(x) for x in wanted]
    for piece in whole:
        for i, line in enumerate(wanted):
            found = piece.numbers[piece.first[i] : piece.first[i + 1]].tolist()
            assert same(found, line)
            assert rows.numbers_in(piece.shapes[i]) == len(found)


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("2147483647", 2147483647),
        ("2147483648", -1),
        ("99999999999999999999999", -1),
        ("0x7fffffff", 2147483647),
        ("0x80000000", -1),
        ("0xffffffffffffffffffffffff", -1),
        ("0000000007", 7),
    ],
)
def test_a_number_too_big_is_minus_one(word, number):
    [piece] = rows.split_by_shape(word, "")
    assert piece.numbers.tolist()[0] == number


def test_pieces_of_a_long_text_know_their_lines(monkeypatch):
    monkeypatch.setattr(rows, "_PIECE", 40)
    lines = [f"line {i} of {i * i}" for i in range(50)]
    found = list(rows.split_by_shape("\n".join(lines), ""))
    assert len(found) > 10
    assert [x for piece in found for x in piece.shapes] == ["line 0 of 0"] * 50
    assert found[0].line == 1
    for piece, after in pairwise(found):
        assert piece.line + len(piece.shapes) == after.line
    assert [n for p in found for n in p.numbers.tolist()] == [
        n for i in range(50) for n in (i, i * i)
    ]


@pytest.mark.parametrize("before", [0, 3])
def test_a_line_of_megabytes_is_refused_by_its_number(before):
    text = "a\n" * before + "1 " * rows.LONGEST_LINE + "\nb\n"
    with pytest.raises(ParseError) as caught:
        list(rows.split_by_shape(text, "long.txt"))
    assert str(caught.value).startswith(f"long.txt:{before + 1}: is longer than")


def test_a_line_longer_than_a_piece_is_refused(monkeypatch):
    monkeypatch.setattr(rows, "_PIECE", 2 * rows.LONGEST_LINE)
    with pytest.raises(ParseError, match=":2: is longer"):
        list(rows.split_by_shape("a\n" + "x" * 5 * rows.LONGEST_LINE, "long.txt"))
