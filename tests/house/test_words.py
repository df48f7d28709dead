# SPDX-License-Identifier: Apache-2.0
"""One meaning a word (docs/dev/words.md): identifiers do not bring the old ones back."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("placement", "rankmap", "workloads", "web")

#: Where a word has the meaning that it keeps.
KEPT = {
    "step": (  # a step of an exchange
        "placement/network/routes.py",
        "rankmap/collectives/",
        "rankmap/pattern/collective.py",
        "rankmap/predict/",
        "rankmap/recognition/",
        "rankmap/recording/",
        "rankmap/search/",
        "workloads/calibrate/readings.py",
    ),
    "sent": (  # messages that ranks sent
        "placement/all_to_alls.py",
        "placement/network/",
        "placement/traffic.py",
        "rankmap/pattern/",
        "rankmap/predict/",
        "rankmap/readers/",
        "rankmap/recognition/",
        "rankmap/recording/",
        "rankmap/search/",
        "workloads/fft/plan.py",
        "workloads/replay/check.py",
        "workloads/stencil.py",
    ),
    "seat": (),
    "binds": (),
    "beside": (),
}


def words_in(name):
    """Return the words of an identifier, singular: ``_ButzStep`` has butz and step."""
    words = re.findall(r"[a-z]+", re.sub(r"([A-Z]+[a-z]*)", r"_\1", name).lower())
    return {word if word in KEPT else word.removesuffix("s") for word in words}


def names_given(tree):
    """Yield (line, name) of what a file names: not what it only uses."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def old_words(path, tree):
    """Yield where a file names something by a word that has another meaning there."""
    for line, name in names_given(tree):
        words = words_in(name)
        for word in words & KEPT.keys():
            if not path.startswith(KEPT[word]) and not (word == "step" and "job" in words):
                yield f"{path}:{line}: {name}"


@pytest.mark.parametrize("room", ROOMS)
def test_one_meaning_a_word(room):
    paths = (path.relative_to(ROOT).as_posix() for path in (ROOT / room).rglob("*.py"))
    assert [w for p in paths for w in old_words(p, ast.parse((ROOT / p).read_text()))] == []


def test_old_words_are_seen():
    source = "for step in found:\n    self.seats = best_seats(job_step=1)\nclass ButzStep: pass\n"
    wrong = ["placement/x.py:1: step", "placement/x.py:2: seats", "placement/x.py:3: ButzStep"]
    assert sorted(old_words("placement/x.py", ast.parse(source))) == wrong
    assert not [*old_words("rankmap/collectives/x.py", ast.parse("step = job_step = 1"))]


def test_each_word_is_in_the_glossary():
    page = (ROOT / "docs/dev/words.md").read_text()
    assert [word for word in KEPT if f"`{word}" not in page] == []
