# SPDX-License-Identifier: Apache-2.0
"""What a file can be: text, gzip, or one line that says why it is neither."""

import gzip
import io
import os
import socket
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, ParseError, UsageError
from nidmap.placement.support import reading
from nidmap.placement.support.reading import format_of_name, suffix_of

TEXT = "one\ntwo\n"


def gz(data):
    """Compress without the time, which would make a new test name every second."""
    return gzip.compress(data, mtime=0)


def refusal(path):
    with pytest.raises(ParseError) as caught:
        reading.load(str(path))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    assert caught.value.exit_code == 3
    return message


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        TEXT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        gz(TEXT.encode()),
        gz(b"one\r\n") + gz(b"two\r\n"),
        gz(TEXT.encode()) + b"\0" * 512,
    ],
)
def test_text_comes_out_the_same_however_it_is_kept(tmp_path, data):
    path = tmp_path / "dump"  # the name says nothing: only the bytes count
    path.write_bytes(data)
    assert reading.load(str(path)) == TEXT


def test_text_that_is_not_ascii_is_kept(tmp_path):
    path = tmp_path / "dump"
    path.write_text("# Müller’s machine\n", encoding="utf-8")
    assert reading.load(str(path)) == "# Müller’s machine\n"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (gz(b""), "is empty"),
        (TEXT.encode("utf-16"), "is UTF-16"),
        (TEXT.encode("utf-16-le"), ":1: byte 0x00 is not text"),
        (b"one\ntwo\nthr\x00ee\n", ":3: byte 0x00 is not text; this file is binary"),
        (b"one\n\x1b[31mtwo\n", ":2: byte 0x1b is not text; colour codes?"),
        (b"one\n\xff\xfe\n", ":2: byte 0xff is not text"),
        (b"\xef\xbb\xbfone\ntw\xffo", ":2: byte 0xff is not text"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd"),
        (b"PK\x03\x04", "zip"),
        (gz(TEXT.encode() * 99)[:-9], "truncated gzip"),
        (gz(TEXT.encode())[:5], "truncated gzip"),
        (b"\x1f\x8b", "truncated gzip"),
        (gz(TEXT.encode())[:-8] + b"\0" * 8, "damaged gzip: incorrect data check"),
        (b"\x1f\x8b" + b"junk" * 9, "damaged gzip"),
        (gz(TEXT.encode()) + b"rest", "damaged gzip"),
        (gz(b"") * 10_001, "damaged gzip: more than 10000 members"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(tmp_path, data, says):
    path = tmp_path / "dump"
    path.write_bytes(data)
    assert says in refusal(path)


def test_missing_file_directory_and_socket_are_refused(tmp_path):
    assert "No such file" in refusal(tmp_path / "nowhere")
    assert "is a directory" in refusal(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert "cannot be read" in refusal(tmp_path / "s")


def test_a_name_that_no_file_can_have_is_refused():
    for name in ("a\0b", "x" * 5000, "a\nb"):
        with pytest.raises(ParseError) as caught:
            reading.load(name)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no /proc to read errors from")
def test_a_read_that_fails_is_one_line():
    assert "cannot be read" in refusal("/proc/self/mem")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "dump"
    path.write_text(TEXT)
    path.chmod(0)
    assert "Permission denied" in refusal(path)


def test_a_fifo_without_a_writer_does_not_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_GRACE_MS", 50)
    os.mkfifo(tmp_path / "fifo")
    assert "nobody writes" in refusal(tmp_path / "fifo")


@pytest.mark.parametrize("pause", [0.0, 0.2])
def test_a_fifo_is_read_to_its_end_even_if_the_writer_is_slow(tmp_path, monkeypatch, pause):
    monkeypatch.setattr(reading, "_GRACE_MS", 2000)
    path = tmp_path / "fifo"
    os.mkfifo(path)

    def feed():
        with open(path, "wb") as stream:
            stream.flush()
            threading.Event().wait(pause)
            stream.write(b"one\n")
            stream.flush()
            threading.Event().wait(pause)
            stream.write(b"two\n")

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        assert reading.load(str(path)) == TEXT
    finally:
        writer.join()


def test_a_writer_slower_than_the_grace_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_GRACE_MS", 50)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    # opened for reading and writing a FIFO always has a writer, who writes late
    handle = os.open(path, os.O_RDWR)

    def feed():
        threading.Event().wait(0.3)
        os.write(handle, TEXT.encode())
        threading.Event().wait(0.3)
        os.close(handle)

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        assert reading.load(str(path)) == TEXT
    finally:
        writer.join()


@pytest.mark.parametrize("data", [TEXT.encode(), gz(TEXT.encode())])
def test_standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert reading.load("-") == TEXT


def test_standard_input_that_is_text_only_closed_or_missing(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(TEXT))
    assert reading.load("-") == TEXT
    closed = io.StringIO()
    closed.close()
    for stdin in (closed, None):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "closed" in refusal("-")


MEASURE = """
import sys
from nidmap.placement.errors import NidmapError
from nidmap.placement.readers import read
try:
    read(sys.argv[1])
    print("accepted")
except NidmapError as error:
    print(error)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def bomb(path, piece, count):
    """Write a gzip file of many members, all alike."""
    path.write_bytes(gz(piece) * count)


ROW = b"   115     0x73 c0-0c1s12n3  compute      down interactive\n"
BOMBS = {
    "zeros": (b"\0" * 2**20, 300),
    "blanks": (b" " * 2**20, 300),
    "one line": (b"1 " * 2**19, 60),
    "newlines": (b"\n" * 2**20, 60),
    "rows": (ROW * 2**14, 140),
    "comments": (b"# 99999999999\n" * 2**16, 60),
    "row and one line": (ROW + b"1 " * 2**19, 60),
}


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is told by /proc")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_within_256_mib(tmp_path, name):
    bomb(tmp_path / "bomb.gz", *BOMBS[name])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "bomb.gz")],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    said, peak = done.stdout.splitlines()
    assert said.startswith(str(tmp_path))
    assert int(peak) < 256 * 1024


def outcome(read):
    """Return the text, or the message of an error of ours, which is one line."""
    try:
        return read()
    except NidmapError as error:
        message = str(error)
    assert "\n" not in message
    return message


@given(data=st.binary(max_size=300))
def test_any_bytes_are_text_or_refused(data):
    assert "\0" not in outcome(lambda: reading.decode(data, "x"))


@given(
    data=st.binary(max_size=200),
    cuts=st.lists(st.integers(0, 400), max_size=3),
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
)
def test_any_damaged_gzip_is_read_or_refused(tmp_path_factory, data, cuts, flips):
    packed = bytearray(gz(data) * 2)
    for at, value in flips:
        packed[at % len(packed)] ^= value
    for cut in cuts:
        del packed[cut % (len(packed) + 1) : cut % (len(packed) + 1) + 3]
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(packed)
    assert "\0" not in outcome(lambda: reading.load(str(path)))


def test_format_of_name():
    assert format_of_name("a.JSON", {".json": "json"}, "text") == "json"
    assert format_of_name("result", {".json": "json"}, "text") == "text"
    with pytest.raises(UsageError, match=r"a\.pdf: \.pdf is not supported; choose from \.json"):
        format_of_name("a.pdf", {".json": "json"}, "text")
    with pytest.raises(UsageError, match=r"choose from \.json, or give --format"):
        format_of_name("a.pdf", {".json": "json"}, "text", "--format")


def test_suffix_of():
    assert suffix_of("run.7/a.JSON") == ".json"
    assert suffix_of("MPICH_RANK_ORDER.7") == "MPICH_RANK_ORDER"
    assert suffix_of("run.7/nodes") == ""


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), st.booleans())
def test_lines_of_a_file_of_any_length(tmp_path_factory, lines, packed):
    path = tmp_path_factory.mktemp("lines") / "text"
    with (gzip.open if packed else open)(path, "wb") as file:
        file.write("".join(f"{line}\r\n" for line in lines).encode())
    assert list(reading.read_lines(str(path), "TRACE")) == lines


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_LONGEST", 10)
    (tmp_path / "text").write_text(f"a\n{'b' * 11}")
    lines = reading.read_lines(str(tmp_path / "text"), "TRACE")
    with pytest.raises(ParseError, match="a line of more than 10 bytes") as error:
        list(lines)
    assert error.value.line == 2
