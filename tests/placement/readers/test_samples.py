# SPDX-License-Identifier: Apache-2.0
"""Every sample in tests/samples: recognised, read, written back, damaged and cut.

Whatever is done to it, the answer is a dump or one line that names the file.
"""

import gzip
import io
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.readers import BUNDLED, find, read, read_text, recognise
from nidmap.placement.support.reading import decode
from tests.effort import examples
from tests.same_machine import same_machine
from tests.samples import SAMPLES, format_of
from tests.writers import FORMATS, write

ROOT = Path(__file__).parents[3]
BYTES = st.one_of(
    st.integers(0, 255).map(lambda i: bytes([i])),
    st.sampled_from([b"\n", b" ", b"-", b"0", b"9" * 12, b"0x", b"#", b"\r", b"\xc2\xa0", b"\xff"]),
    st.sampled_from([b"[", b"]", b",", b"=", b'"', b"{", b"}", b":", b"n[1-3]"]),
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["flip", "insert", "cut", "end", "copy", "drop-line", "swap-lines", "mix"]),
        st.integers(0, 10_000),
        st.integers(0, 300),
        BYTES,
    ),
    min_size=1,
    max_size=5,
)


def damaged(data, changes):
    """Return the bytes after some accidents."""
    for what, at, size, byte in changes:
        at = at % (len(data) + 1)
        if what == "flip":
            data = data[:at] + byte + data[at + len(byte) :]
        elif what == "insert":
            data = data[:at] + byte + data[at:]
        elif what == "cut":
            data = data[:at] + data[at + size :]
        elif what == "end":
            data = data[:at]
        elif what == "copy":
            data = data[:at] + data[at : at + size] * 2 + data[at + size :]
        elif what == "mix":
            other = list(SAMPLES.values())[size % len(SAMPLES)].encode()
            data = data[:at] + other[: at + 1] + data[at:]
        else:
            lines = data.split(b"\n")
            i = at % len(lines)
            if what == "drop-line":
                del lines[i]
            else:
                lines[i], lines[size % len(lines)] = lines[size % len(lines)], lines[i]
            data = b"\n".join(lines)
    return data


def check(dump, text):
    """Assert what holds of every dump: all lines are counted, columns are of one length."""
    total = text.count("\n") + (text != "" and not text.endswith("\n"))
    assert dump.counts.total == total
    assert all(str(fault).isprintable() and 0 <= fault.line <= total for fault in dump.findings)
    if dump.nodes is not None:
        columns = [getattr(dump.nodes, name) for name in dump.nodes.__slots__]
        assert {len(c) for c in columns if c is not None} == {len(dump.nodes)}
        assert all(0 <= line <= total for line in dump.nodes.line.tolist())


def read_or_refused(data, name=""):
    """Read bytes; return the dump, or None after checking the one line that refuses them."""
    try:
        text = decode(data, "d")
        dump = find(name).read(text, "d") if name else read_text(text, "d")
        check(dump, text)
    except NidmapError as error:
        message, code = str(error), error.exit_code
    else:
        return dump
    assert code == 3
    assert message.isprintable()
    assert message.startswith(("d:", "d "))
    assert len(message) < 800
    return None


@pytest.mark.parametrize("name", BUNDLED)
def test_every_format_has_a_sample(name):
    assert name in map(format_of, SAMPLES), f"tests/samples/{name} is missing: a sound dump"


def test_every_sample_is_of_a_format():
    assert {format_of(sample) for sample in SAMPLES} <= set(BUNDLED)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_recognised_by_its_content_and_sound(sample):
    text = SAMPLES[sample]
    assert recognise(text, "x") == format_of(sample)
    assert find(format_of(sample)).sniff(text)
    for same in (text, "\n" + text, text.replace("\n", "\r\n")):
        dump = read_text(same, "x")
        assert dump.format == format_of(sample)
        assert dump.source == "x"
        assert [str(fault) for fault in dump.findings if fault.fault] == []
        check(dump, same)


@pytest.mark.parametrize("sample", SAMPLES)
def test_no_other_format_takes_a_sample_for_its_own(sample):
    others = [find(name) for name in BUNDLED if name != format_of(sample)]
    claiming = [form.name for form in others if form.sniff(SAMPLES[sample])]
    assert claiming == []


@pytest.mark.parametrize("sample", SAMPLES)
def test_files_gzip_and_standard_input_give_the_same(sample, tmp_path, monkeypatch):
    data = SAMPLES[sample].encode()
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    for source in (str(tmp_path / "plain"), str(tmp_path / "packed"), "-"):
        dump = read(source)
        assert dump.format == format_of(sample)
        assert dump.source == source


@pytest.mark.parametrize("sample", [name for name in SAMPLES if format_of(name) in FORMATS])
def test_the_machine_of_a_sample_is_written_and_read_back(sample):
    machine = assemble([read_text(SAMPLES[sample], "x")])
    try:
        text = write(machine, format_of(sample))
    except UsageError:
        pytest.skip("this format cannot say all that the machine is")
    assert same_machine(assemble([read_text(text, "x")]), machine)


@pytest.mark.parametrize("sample", SAMPLES)
@examples(80)
@given(changes=CHANGES)
def test_a_damaged_sample_makes_a_machine_or_one_line(sample, changes):
    dump = read_or_refused(damaged(SAMPLES[sample].encode(), changes))
    if dump is None:
        return
    try:
        assemble([dump])
    except NidmapError as error:
        assert str(error).isprintable()  # noqa: PT017  # a machine is an answer too


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_cut_short_anywhere_is_read_or_refused(sample):
    data = SAMPLES[sample].encode()
    last_line = range(max(0, len(data) - 20), len(data))
    for end in {*range(0, len(data), 1 + len(data) // 20), *last_line}:
        read_or_refused(data[:end], format_of(sample))


@pytest.mark.parametrize("name", BUNDLED)
@given(data=st.binary(max_size=200))
def test_any_bytes_given_to_any_reader_are_read_or_refused(name, data):
    read_or_refused(data, name)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_guide_says_what_a_format_tells(name):
    head = import_module(find(name).read.__module__).__doc__.split("\n")[0]
    head = head.replace("``", "`").replace("|", "\\|").rstrip(".")
    row = "| {} | {} |".format(*head.split(": ", 1))
    shown = (ROOT / "docs" / "reference" / "machines.md").read_text().splitlines()
    assert row in shown, f"docs/reference/machines.md lacks, under Dumps: {row}"
