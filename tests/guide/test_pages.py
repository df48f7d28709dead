# SPDX-License-Identifier: Apache-2.0
"""The guide: outputs are what commands print, tables are the registries', links lead somewhere."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from nidmap.placement.commands import run
from nidmap.rankmap import pattern
from tests.guide import blocks, tables
from tests.guide.blocks import PAGES, ROOT
from tests.house.test_help import COMMANDS

DOCS = ROOT / "docs"
WRITTEN = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *(ROOT / "benchmarks" / "reports").glob("*.md"),
]
PARTS = ("start", "howto", "reference", "trust")

#: Words of the guide's four parts, of a page of a task, and of the README, beside what is printed.
MOST, MOST_OF_A_TASK, MOST_OF_README = 20_000, 400, 500

_FENCE = re.compile(r"^ *(```+).*?^ *\1 *$", re.S | re.M)
_LINK = re.compile(r"(?<!`)\]\((?!https?:|mailto:)([^)\s]+)\)")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def with_blocks():
    return [path for path in PAGES if blocks.commands(path.read_text())]


def prose(path):
    """Return a page without its fenced blocks and without tables that are made."""
    text = _FENCE.sub("", path.read_text())
    return re.sub(r"<!-- (table|made): .*?<!-- end -->", "", text, flags=re.S)


@cache
def why_no_minicray():
    """Return why no mini-Cray with a Slurm can be built here; '' where it can."""
    program = Path(sys.executable).with_name("nidmap")
    words = [program, "minicray", "run", "-m", "minicray:fattree", "--", "sinfo"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else f"no mini-Cray with Slurm: {done.stderr.strip()[-200:]}"


@pytest.mark.slow
@pytest.mark.parametrize("path", with_blocks(), ids=name_of)
def test_a_page_shows_what_its_commands_print(path, tmp_path):
    page = path.read_text()
    texts = [command.text for block in blocks.commands(page) for command in block]
    if any("minicray" in text for text in texts) and why_no_minicray():
        pytest.skip(why_no_minicray())
    if any(" record " in text for text in texts) and not shutil.which("cc"):
        pytest.skip("no compiler: the recorder cannot be built")
    outputs = blocks.run_page(page, tmp_path)
    for block, printed in zip(blocks.commands(page), outputs, strict=True):
        for command, lines in zip(block, printed, strict=True):
            shown = "\n".join(lines)
            assert command.holds(lines), (
                f"{name_of(path)}: $ {command.text}\nprints now (make docs-output):\n{shown}"
            )


def test_a_command_is_read_with_its_lines_and_what_it_prints():
    page = "```console\n$ a \\\n    b\nx\n…\ny\n$ c\n```\n\n"
    page += "```console measured\n$ d\ntook 3.5 s\n```\n"
    (one, two), (three,) = blocks.commands(page)
    assert (one.text, two.text) == ("a \\\n    b", "c")
    assert one.holds(["x", "1", "2", "y"])
    assert not one.holds(["x", "1", "2"])
    assert two.holds([])
    assert not two.holds(["x"])
    assert three.holds(["took 12.25 s"])
    assert not three.holds(["takes 3.5 s"])
    assert blocks.rewritten(page, [[["x", "1", "2", "y"], []], [["took 4 s"]]]) == page.replace(
        "3.5", "4"
    )


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_tables_are_what_is_registered(path):
    page = path.read_text()
    assert tables.rewritten(page) == page, "make docs-output makes it anew"


def test_every_table_is_shown():
    shown = [name for path in PAGES for name in tables.named(path.read_text())]
    assert sorted(shown) == sorted(tables.TABLES)


def test_every_pattern_has_a_row():
    rows = [
        line for line in (DOCS / "reference/patterns.md").read_text().split("\n") if "| `" in line
    ]
    named = {name for row in rows for name in re.findall(r"`([a-z]+)\b", row.split(" | ")[0] + "`")}
    assert set(pattern._builders.names()) - named == set()


def anchors(path):
    """Return the anchors of a page as its builder makes them of headings."""
    heads = re.findall(r"^#{1,4} (.*)$", _FENCE.sub("", path.read_text()), re.M)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", head).lower()).replace(" ", "-")
        for head in heads
    }


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_links_lead_somewhere(path):
    lost = []
    for target in _LINK.findall(_FENCE.sub("", path.read_text())):
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            lost.append(target)
    assert lost == []


def test_every_picture_is_shown():
    shown = {
        (path.parent / target).resolve()
        for path in WRITTEN
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text())
    }
    kept = [*(DOCS / "images").iterdir(), *(ROOT / "benchmarks/reports/images").iterdir()]
    assert [name_of(path) for path in kept if path not in shown] == []


def test_the_guide_stays_short():
    words = {
        part: sum(len(prose(path).split()) for path in (DOCS / part).glob("*.md")) for part in PARTS
    }
    assert sum(words.values()) <= MOST, words


@pytest.mark.parametrize("path", sorted((DOCS / "howto").glob("*.md")), ids=name_of)
def test_a_task_is_a_short_page(path):
    assert len(prose(path).split()) <= MOST_OF_A_TASK


def test_the_readme_is_short():
    assert len(prose(ROOT / "README.md").split()) <= MOST_OF_README


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_is_no_diary(path):
    text = prose(path)
    assert re.findall(r"(?i)since then|formerly|\bquestion \d|\bseed \d", text) == []


@pytest.mark.parametrize("path", COMMANDS)
def test_a_help_names_a_page_of_the_guide(path):
    context = COMMANDS[path]
    *_, last = context.command.get_help(context).strip().split("\n")
    named = re.fullmatch(r" *Guide: (docs/\S+\.md)", last)
    assert named, f"the help of {path} ends with: {last}"
    assert (ROOT / named[1]).exists()


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("machine show", "docs/howto/new-site.md"),
        ("site show nowhere", "docs/reference/site-file.md"),
        ("plan -m tree:4x4 -N 2 --pattern nonsense", "docs/reference/patterns.md"),
        ("plan -m tree:4x4 -N 2 --strategy nonsense", "docs/reference/strategies.md"),
        ("order -m tree:4x4 --pattern ring --strategy nonsense", "docs/reference/orders.md"),
        ("order -m tree:4x4 --pattern ring --format nonsense", "docs/reference/formats.md"),
    ],
)
def test_an_error_names_the_page_that_explains_it(words, page, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # neither Slurm nor others are there to be asked
    assert run(words.split()) in (2, 3)
    assert capsys.readouterr().err.rstrip().endswith(f"(see {page})")
    assert (ROOT / page).exists()
