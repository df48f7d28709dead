# SPDX-License-Identifier: Apache-2.0
"""Every example of every help text, of the README and of the docs is taken, and runs where it can.

What needs a cluster, a launcher or a person is read by the command's own
parser only: its options are there and its arguments make sense.
"""

import gzip
import io
import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

import nidmap  # noqa: F401  # tells the front door where the commands are
from nidmap.placement.commands import cli, run
from nidmap.placement.load import load_machine
from nidmap.placement.topologies import links
from tests.hwloc_xml import node_xml
from tests.writers import write

ROOT = Path(__file__).parents[2]

#: What other commands would print into a pipe.
PRINTED = {
    "squeue -h -j 4711 -o %N": "nid[00324-00383]\n",
    "scontrol show hostnames": "nid00000\nnid00040\nnid00001\n",
    "squeue": "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
    "   4711 workq a b R 1:00 4 nid[00200-00203]\n",
    "sinfo -N": "NODELIST NODES PARTITION STATE\n"
    + "".join(f"nid{i:05d} 1 workq idle\n" for i in range(200, 299)),
    "sinfo -N -o %N %t": "NODELIST STATE\n"
    + "".join(f"nid{i:05d} idle\n" for i in range(200, 460)),
    "scontrol show nodes": "".join(
        f"NodeName=nid{i:05d} Arch=x86_64 CoresPerSocket=16\n   State=IDLE Partitions=workq\n\n"
        for i in range(200, 460)
    ),
    "sacct -a -X -P -o JobID,User,Start,End,NodeList,JobName": (
        "JobID|User|Start|End|NodeList|JobName\n"
        "4711|ada|2024-05-01T12:00:00|2024-05-01T13:00:00|nid[001000-001003]|lammps-1\n"
    ),
    "pbsnodes -a -F json": json.dumps(
        {
            "timestamp": 1,
            "pbs_version": "2022.1",
            "nodes": {"x3001c0s1b0n0": {"state": "free"}, "x3001c0s1b1n0": {"state": "down"}},
        }
    ),
}

#: What a command needs that is not here: a launcher, a cluster, a recorded program, hours; what
#: would change a site's Slurm.
ELSEWHERE = re.compile(
    r"^(ab |bench |minicray|web (serve|record)|record|preload)"
    r"|^jobs( -m lumi)?( --(since|user|last|applications) \S+)*( -o \S+)?$|-m slurm:"
    r"|^(record show|slurm )"
    r"|^calibrate |^run (?!.*--dry-run)|^nodes free( -p|$)"
    r"|--from idle|--check|--job|measured:|matrix:prof"
)


#: How a line begins that is an example.
LEADING = re.compile(r"((squeue|sinfo|sacct|scontrol|pbsnodes|rtr)\b.*\| |srun .*|)nidmap ")

#: Lines that look like examples and have a part that stands for something.
SYNOPSIS = re.compile(r"…|\[--|MACHINE|^nidmap: ")


def helps(command, path="nidmap", parent=None):
    """Yield the name and the help of a command and of all below it."""
    context = click.Context(command, info_name=path, parent=parent)
    yield path, (command.help or "").replace("\\\n", " ")
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from helps(command.get_command(context, name), f"{path} {name}", context)


def blocks():
    """Yield the name and the text of the code blocks of README, docs and examples.

    Blocks of a console are run as they stand, and their output compared, by `tests.guide`.
    """
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for kind, block in re.findall(r"^```([^\n]*)\n(.*?)^```", path.read_text(), re.S | re.M):
            if not kind.startswith(("console", "{")):
                yield path.name, block.replace("\\\n", " ")


def examples():
    """Return all examples as (where, line), each once."""
    found = {}
    for where, text in (*helps(cli), *blocks()):
        for line in text.splitlines():
            bare = line.strip().removeprefix("$ ").partition("  #")[0]
            if LEADING.match(bare):
                found.setdefault(bare, where)
    return [(where, x) for x, where in found.items() if not SYNOPSIS.search(x)]


EXAMPLES = examples()


def commands(line):
    """Return the commands of a pipeline, each as its words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    found = [[]]
    for word in lexer:
        if word == "|":
            found.append([])
        else:
            found[-1].append(word)
    return found


def listed_links(site, path):
    """Write a site's links as rtr lists them, beside it compressed."""
    machine = load_machine(site)
    text = write(replace(machine, links=links(machine)), "rtr-aries")
    path.write_text(text)
    Path(f"{path}.gz").write_bytes(gzip.compress(text.encode(), 1))


def listed_nodes(site, *paths):
    """Write a site's nodes as xtprocadmin lists them."""
    text = write(load_machine(site), "xtprocadmin")
    for path in paths:
        path.write_text(text)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("files")

    def make(words, *names):
        first = folder / names[0]
        assert run([*words.split(), "-o", str(first)]) == 0
        for name in names[1:]:
            if name.endswith(".gz"):
                (folder / name).write_bytes(gzip.compress(first.read_bytes(), 1))
            else:
                shutil.copy(first, folder / name)

    listed_nodes("shaheen2", folder / "my.xtprocadmin", folder / "today.xtprocadmin")
    listed_nodes("pizdaint", folder / "xtprocadmin.txt", folder / "daint.xtprocadmin")
    listed_links("shaheen2", folder / "my.rtr")
    listed_links("pizdaint", folder / "rtr.txt")
    listed_links("edison", folder / "edison.rtr")
    shutil.copy(folder / "edison.rtr.gz", folder / "edison.rtr_interconnect.txt.gz")
    make("plan -m shaheen2 -N 216 --format nodelist", "nodes.txt", "job.list")
    make("machine export -m tree:8x8x2 --format topology-conf", "topology.conf")
    (folder / "nidmap").mkdir()
    (folder / "nidmap" / "config.toml").write_text('machine = "tree:16x32,bw=12.5"\n')
    four = "-m shaheen2 --nodes 12-15 --ppn 32 --pattern fft:8x16 --strategy row-major"
    make(f"order {four}", "MPICH_RANK_ORDER")
    make("order -m tree:4x16x6 --ppn 24 --pattern stencil:24x24x16 --strategy row-major", "a.slots")
    shutil.copy(ROOT / "site-configs" / "pizdaint.toml", folder / "mymachine.toml")
    (folder / "hosts.txt").write_text("nid00045\nnid00012\n")
    ranks = 384 * 24
    ring = "".join(f"{(r - 1) % ranks + 1} {(r + 1) % ranks + 1}\n" for r in range(ranks))
    (folder / "comm.graph").write_text(f"{ranks} {ranks}\n{ring}")
    np.savez(folder / "comm.npz", matrix=np.eye(128, k=1))
    (folder / "prof").mkdir()
    figure = '{ value = 3.0, mark = "measured", source = "nidmap calibrate" }'
    (folder / "calibrated.toml").write_text(f"[bandwidth]\nblue = {figure}\n")
    shares = "name = 'lammps*'\npattern = 'stencil:auto'\ncommunication = 0.3\n"
    (folder / "mine.toml").write_text(f"[[application]]\n{shares}")
    ended = "user=ada jobname=lammps queue=prod start=10 exec_host={}/0*32+{}/0*32 end=20"
    ended = ended.format(*load_machine("polaris").names[:2])
    (folder / "accounting.log").write_text(f"05/01/2024 12:00:00;E;7.pbs;{ended}\n")
    swf = "".join(f"{k} {k} 0 9 {k} 0 0 {k} 9 0 1 1 1 1 1 0 0 0\n" for k in range(1, 9))
    (folder / "trace.swf.gz").write_bytes(gzip.compress(f"; MaxNodes: 8\n{swf}".encode()))
    week = f"7|ada|5|10|20|00:01:00|{load_machine('lumi').names[0]}|lammps\n"
    columns = "JobID|User|Submit|Start|End|Timelimit|NodeList|JobName"
    (folder / "week.txt").write_text(f"{columns}\n{week}")
    (folder / "node.xml").write_text(node_xml(1, 2, 2, 2, 2))
    return folder


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """Stand in a folder of one's own with the files, its machine set as the docs set it."""
    for path in files.iterdir():
        if path.is_file():
            os.link(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(files))  # stands for the cluster that one is on
    return tmp_path


def parse(words):
    """Let the command's own parser read its words."""
    command, words = cli, list(words)
    while isinstance(command, click.Group):
        below = command.get_command(click.Context(command), words[0])
        if below is None:
            break  # nidmap record -- a program's words
        command = below
        words.pop(0)
    assert command is not cli
    command.make_context(command.name, words)


def substituted(words):
    """Replace ``$(cat FILE)`` by what the file holds."""
    return [
        re.sub(r"\$\(cat (\S+)\)", lambda match: Path(match[1]).read_text().strip(), word)
        for word in words
    ]


def quickened(words):
    """Leave out the search of ``auto``: what it finds is tested where it lives."""
    if words[0] == "plan" and "--pattern" in words:
        return [*words, "--deadline", "0.1"]
    if words[0] == "replay" and "--policies" not in words:
        return [*words, "--policies", "slurm,tree"]
    if words[0] == "compare" and "--strategies" not in words:
        return [*words, "--strategies", "compact"]
    return [*words, "--strategy", "row-major"] if words[0] == "order" else words


@pytest.mark.parametrize(("where", "line"), EXAMPLES, ids=[f"{w}: {x}" for w, x in EXAMPLES])
def test_an_example_holds(here, monkeypatch, capfdbinary, where, line):
    if " -m " not in line:
        monkeypatch.setenv("SLURM_JOB_NODELIST", "nid0000[0-7]")
        monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "8")
    text = b""
    for words in commands(line):
        if words[0] != "nidmap":
            text = printed(words)
            if text is None:
                return parse(words[words.index("nidmap") + 1 :])
            continue
        words = quickened(substituted(words[1:]))
        if ELSEWHERE.search(" ".join(words)):
            return parse(words)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        capfdbinary.readouterr()
        code = run(words)
        text, said = capfdbinary.readouterr()
        assert code in ((0, 1) if "check" in words[:2] else (0,)), said.decode()
    return None


def printed(words):
    """Return what another command would print; None for one that starts nidmap itself."""
    if words[0] == "rtr":
        return Path("edison.rtr").read_bytes()
    said = PRINTED.get(" ".join(words))
    return None if said is None else said.encode()


def test_the_examples_are_found():
    assert len(EXAMPLES) > 120
    assert any(where == "README.md" for where, _ in EXAMPLES)
