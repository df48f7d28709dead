# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: commands with a text or a file, the page's requests, files that it reads."""

import asyncio
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nidmap
from nidmap.placement.errors import NidmapError
from nidmap.rankmap.predict import Job
from tests.fuzz.questions import question
from tests.samples import SAMPLES

HERE = Path(__file__).parent.parent
MACHINE = "dragonfly:groups=4,chassis=2,blades=4,nodes=4"
JOB = ("--nodes", "0-5", "--ppn", "4")
GRID = (*JOB, "--pattern", "stencil:4x6")

#: Exit codes that a wrong input may have, and statuses that the page's server may answer with.
CODES = {0, 1, 2, 3, 4, 5}
STATUSES = {200, 204, 303, 304, 308, 400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 431}


class Target(NamedTuple):
    """Seeds and what takes them: ``ask(data, folder)`` returns what is wrong, '' for nothing."""

    seeds: list
    ask: object


# --- commands -------------------------------------------------------------------------


def command(seeds, *words, name="input", pack=bytes):
    """Return the target of a command in which ``TEXT`` or ``FILE`` stands for the input."""

    def ask(data, folder):
        text = data.decode("utf-8", "surrogateescape")
        path = f"{folder}/{name}"
        Path(path).write_bytes(pack(data))
        argv = [word.replace("TEXT", text).replace("FILE", path) for word in words]
        return said(argv)

    return Target(seeds, ask)


def said(argv):
    """Run a command here and return what is wrong with how it ended."""
    from nidmap.placement.commands import run

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors) for errors in
               ("surrogateescape", "strict", "backslashreplace")]  # fmt: skip
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        code = run(argv)
        sys.stderr.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    words = streams[2].buffer.getvalue().decode("utf-8", "replace")
    return wrong(code, words)


def wrong(code, words):
    """Return what is wrong with an exit code and what stands on stderr."""
    if code not in CODES:
        return f"exit code {code}: {words[-400:]}"
    complaint = [line for line in words.splitlines() if line.startswith("nidmap: ")]
    if "out of memory" in words:
        return words[-300:]
    if code > 1 and (not complaint or not words.endswith(complaint[-1] + "\n")):
        return f"exit code {code} without one line: {words[-400:]!r}"
    return "" if words.replace("\n", "").replace("\t", "").isprintable() else f"raw: {words!r}"


#: Commands that start nothing and write nothing.
_HARMLESS = (
    "nodes", "plan", "order", "score", "predict", "compare", "machine", "site",
)  # fmt: skip


@cache
def examples():
    """Return the command lines that the help of our commands shows, on a small machine."""
    import click

    from nidmap.placement.commands import cli

    lines, waiting = [], [(name,) for name in _HARMLESS]
    while waiting:
        path = waiting.pop()
        found = cli
        for word in path:
            found = found.get_command(click.Context(cli), word)
        waiting += [(*path, one) for one in getattr(found, "commands", ())]
        lines += re.findall(r"^ *nidmap (.*?)(?:  +#.*)?$", found.help or "", re.MULTILINE)
    plain = [line for line in lines if not re.search(r"[|$<>]| -o|-out", line)]
    named = [re.sub(r"-m \S+", f"-m {MACHINE}", line) for line in plain]
    return [re.sub(r"-N \d+", "-N 24", line).encode() for line in named]


def command_line(data, folder):
    """Run a mutated command line; one that could write somewhere is left out."""
    with contextlib.suppress(ValueError):
        argv = shlex.split(data.decode("utf-8", "surrogateescape"))
        known = any(data.startswith(seed.split()[0] + b" ") for seed in examples())
        if known and not any(word.startswith(("-o", "--o")) for word in argv):
            os.chdir(folder)
            return said(argv)
    return ""


def sensible(data, folder):
    """Ask a question that makes sense; it may be one that has no answer."""
    os.chdir(folder)
    argv = question(data)
    if argv[0] == "score":
        argv += ["--strategy", "morton"]
    fault = said(argv)
    return fault and f"{shlex.join(argv)}: {fault}"


# --- the page -------------------------------------------------------------------------


class Lane:
    """Calculates here and at once, as a process of `nidmap.web.workers` would."""

    inside = 0

    def __init__(self, machine, *_):
        self._machine = machine

    async def call(self, function, *arguments, question="", told=None):
        """Return what a process would."""
        from nidmap.web import workers

        workers._machine = self._machine
        return workers._answer_safely(0, float("inf"), function, arguments)

    async def json(self, function, *arguments, question="", told=None):
        """Return what a process would, as JSON."""
        from nidmap.web.workers import _as_json

        return await self.call(_as_json, function, *arguments)

    def finish(self, question):
        """Nothing is ever under way."""
        return False


@cache
def page():
    """Return the page's application and its loop."""
    from nidmap.web import service as module
    from nidmap.web.app import make_app
    from nidmap.web.server import Gateway

    lane, module.Lane = module.Lane, Lane
    service = module.Service(nidmap.load_machine(MACHINE))
    module.Lane = lane
    return Gateway(make_app(service), service), asyncio.new_event_loop()


def request(data, folder):
    """Send a request: ``METHOD path?query``, a line's end, the body."""
    del folder
    head, _, body = data.partition(b"\n")
    method, _, target = head.decode("latin-1").partition(" ")
    path, _, query = target.partition("?")
    visible = target.isascii() and target.isprintable() and " " not in target
    if method not in ("GET", "POST", "HEAD", "PUT") or not visible:
        return ""  # what h11 refuses
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path, "scheme": "http",
        "raw_path": path.encode(), "query_string": query.encode("latin-1"), "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "asgi": {"version": "3.0"},
        "extensions": {}, "state": {},
    }  # fmt: skip
    bodies, got = [body], []

    async def receive():
        if not bodies:  # nobody hangs up
            await asyncio.sleep(3600)
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message):
        got.append(message)

    application, loop = page()
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        loop.run_until_complete(application(scope, receive, send))
    status = next(one["status"] for one in got if "status" in one)
    found = b"".join(one.get("body", b"") for one in got)
    if status in STATUSES:
        return "" if status < 400 or b'"detail"' in found else f"{status} without a problem"
    return f"HTTP {status}: {found[:200]!r} {stderr.getvalue()[-400:]}"


def requests():
    """Return requests of every kind."""
    nodes = "0-3,nid[00007-00012]"
    bodies = {
        "describe": {"nodes": nodes, "ppn": 2, "pattern": "fft:4x5", "bytes": 1e6, "links": 10,
                     "order": "morton", "routing": "minimal"},
        "compare": {"count": 8, "ppn": 2, "pattern": "stencil:4x4", "strategies": ["compact"],
                    "orders": ["row-major"], "from": "0-63", "exclude": "9", "seed": 1},
        "plan": {"count": 8, "strategy": "compact", "from": "#0-63", "include": "3", "ppn": 1,
                 "pattern": "alltoall", "exclude": "c0", "per_blade": 2, "bytes": 64},
        "order": {"nodes": "0-3", "ppn": 4, "pattern": "stencil:4x4", "strategy": "hilbert",
                  "format": "mpich", "launcher_order": "given", "slots": []},
        "finish": {"question": "q1"},
        "resolve": {"text": "nid00001 and g2\n#SBATCH -w nid[00003-00005]\n1-7,c0-0c1s3n2 'x'"},
        "emit": {"nodes": nodes, "format": "sbatch", "ppn": 4},
        "export": {"format": "svg", "nodes": "0-9",
                   "marks": [{"nodes": "7", "name": "a", "hue": 3}], "view": "",
                   "colour": "group", "theme": "dark", "width": 400},
    }  # fmt: skip
    posts = [f"POST /api/v1/{name}\n{json.dumps(body)}" for name, body in bodies.items()]
    slots = {"nodes": "0-1", "ppn": 2, "slots": [3, 1, 0, 2], "pattern": "ring", "format": "json"}
    gets = [f"GET /api/v1/{path}" for path in (
        "nodes?nodes=12-15", "hops?from=nid00004&routing=minimal", "layout?view=usual", "state",
        "jobs", "machine", "status", "slowdowns", "measured?links=9")]  # fmt: skip
    posts += [f"POST /api/v1/order\n{json.dumps(slots)}"]
    return [text.encode() for text in (*posts, *gets, "GET /?token=a")]


# --- files that the page reads --------------------------------------------------------


def raises(ask):
    """Return an `ask` for a function that may raise our errors alone, each on one line."""

    def asked(data, folder):
        try:
            ask(data, folder)
        except NidmapError as error:
            return wrong(error.exit_code, f"nidmap: {error}\n")
        return ""

    return asked


def live_file(data, folder):
    """Read a file as ``nidmap web serve --from FILE`` does."""
    from nidmap.web.snapshot import ask_sources

    path = Path(folder, "live")
    path.write_bytes(data)
    machine = machine_once()
    ask_sources(machine, (str(path),)).document(machine)


def link_counters(data, folder):
    """Read a file as ``nidmap web serve --link-loads FILE`` does."""
    from nidmap.web.measured import measured

    path, fabric = Path(folder, "counters"), Path(folder, "fabric")
    path.write_bytes(data)
    if data.lstrip().startswith((b"#", b"Data", b"Errors", b"CA", b"SW")):
        fabric.write_text(SAMPLES["ibnetdiscover"])
        measured(nidmap.load_machine(str(fabric)), (str(path), str(fabric)), 100)
    else:
        measured(machine_once(), (str(path),), 100)


machine_once = cache(lambda: nidmap.load_machine(MACHINE))

# --- seeds ----------------------------------------------------------------------------


def dumps():
    """Return a sample of each format and the golden machines' dumps, the long ones cut."""
    found = [text.encode() for text in SAMPLES.values()]
    found += [path.read_bytes() for path in sorted(HERE.glob("machines/*/source*"))]
    return [raw if len(raw) < 20_000 else raw[:20_000].rpartition(b"\n")[0] for raw in found]


def sites():
    """Return the bundled sites' files."""
    return [path.read_bytes() for path in sorted((HERE.parent / "site-configs").glob("*.toml"))]


COUNTERS = [
    b"link,bytes\ng0c0b0->g0c0b1 green,120\ng0c0b1->g0c0b0 green,7e9\n",
    b"From, To, Bytes\ng0c0b0,g0c0b1,12\nnid00000,g0c0b0,4\n",
    b'{"schema": "nidmap.minicray.links/1", "links": {"g0c0b0->g0c0b1 green": {"bytes": 5}}}',
    b"# Port extended counters: Lid 1 port 1 (CapMask: 0x5A00 CapMask2: 0x0000002)\n"
    b"PortSelect:......................1\nPortXmitData:....................12\n"
    b"PortRcvData:.....................34\n# Port counters: Lid 5 port 255 (CapMask: 0x1A00)\n"
    b"PortXmitData:....................1\nPortRcvData:.....................2\n",
    b'Data Counters for 0xa1 "leaf"\n   GUID 0xa1 port 1: [PortXmitData == 5 (20.000B)]'
    b" [PortRcvData == 6 (24.000B)]\n\n## Summary: 1 nodes checked, 0 bad nodes found\n",
]
LISTS = [
    b"nid[00012-00015,00020]", b"nid00001 nid00002\nnid00003", b"1-7,9,#0-63", b"c0-0c1s3n2 c0-0c1",
    b"x1000c0s0b0n[0-1]", b"nid00045*3\nnid00046:4 slots=2", b"#SBATCH -w nid[1-2]\n#SBATCH -N 2",
    b"exec_host=n1/0*4+n2/1", b"rack[1-3]node[01-10]", b"PARTITION AVAIL NODES STATE NODELIST\n"
    b"workq up 4 idle nid[00001-00004]\n", b"n[0-1]-ib,n2", b"@hosts", b"a1,a2,a10,b[1,3,5-7]",
]  # fmt: skip
SPECS = [
    MACHINE.encode(), b"torus:4x4x2,nodes=2,bw=4.68", b"fattree:leaf=4,leaves=4,spines=2,bw=12.5",
    b"fattree:down=4x3x2,up=1x2x2", b"tree:4x4x2,dist=1:2:3",
    b"slingshot:groups=3,switches=4,nodes=2",
    b"torus:4x4,bw=1:2", b"dragonfly:groups=2,chassis=1,blades=2,nodes=1,wiring=consecutive",
]  # fmt: skip
PATTERNS = [
    b"alltoall", b"stencil:4x6,periodic,weights=1:2", b"fft:4x6", b"fft:24", b"sort", b"ring",
    b"training:tp=2,pp=3,dp=4", b"bcast", b"allreduce", b"permutation:shift=3",
    b"transposition:4x6", b"barrier", b"reducescatter", b"stencil:24", b"stencil:2x3x4,box",
    b"gather:root=3", b"scatter",
]  # fmt: skip
ROWS = ["0,1,8,0", "1,0,2,5", "8,2,0,1", "0,5,1,0"]
TABLES = {
    "csv": ["\n".join(ROWS), "# ranks=4\nfrom,to,bytes\n0,1,100\n3,2,5.5\n", "0;1;7\n1;3;8e3\n"],
    "graph": ["4 4\n2 3\n1 4\n1 4\n2 3\n", "3 2 001\n2 7\n1 7 3 1\n2 1\n",
              "% c\n2 1 11\n1 2 3\n1 1 3"],
    "prof": ["# POINT TO POINT\n"
             "E\t0\t1\t108 bytes\t27 msgs sent\t0,27\nI\t1\t3\t8 bytes\t1 msgs sent\n"],
    "sends": ["# ranks=24\nsrc dst bytes\n0 1 100\n2 3 50\n", "0,23,8\n1,22,9\n"],
}  # fmt: skip
JOBS = {"jobs": [
    {"job_id": 7, "job_state": ["RUNNING"], "nodes": "nid[00001-00004]", "name": "a",
     "user_name": "u", "partition": "p"},
    {"job_id": {"number": 8}, "job_state": "RUNNING", "nodes": "nid00009"},
]}  # fmt: skip
PAST = [
    "JobID|JobName|User|State|Start|End|NodeList\n"
    "1|a|u|COMPLETED|2024-05-01T00:00:00|2024-05-01T10:00:00|nid[00001-00003]\n"
    "1.batch|batch||COMPLETED|2024-05-01T00:00:00|2024-05-01T10:00:00|nid00001\n"
    "2_3|b|v|CANCELLED by 7|2024-05-01T00:30:00+02:00|Unknown|nid00005\n"
    "3|c|v|PENDING|Unknown|Unknown|None assigned\n",
    'job,hosts,start,elapsed,name\n7,"nid00001,nid00002",10,1-02:00:00,x\n8,nid00009,20,5,"a\nb"\n',
    "05/01/2024 12:00:00;E;7.pbs;user=a jobname=b queue=q start=10 exec_host=nid00001/0*24+nid00002"
    "/0*24 exec_vnode=(nid00001:ncpus=24)+(nid00002:ncpus=24) end=20 Exit_status=0\n",
    json.dumps(JOBS),
]  # fmt: skip
SHARES = (
    '[[application]]\nname = "a*"\npattern = "stencil:auto"\ncommunication = 0.3\nppn = 4\n'
    '[[application]]\nuser = "v"\npattern = "alltoall"\ncommunication = [0.1, 0.2]\nbytes = 8\n'
)
SPARSE = {"row": [0, 1, 3], "col": [1, 0, 2], "data": [5, 6, 7], "shape": [4, 4]}


@cache
def past_jobs():
    """Return the path of a list of jobs that stays as it is."""
    path = Path(tempfile.mkdtemp(prefix="nidmap-fuzz-"), "jobs")
    path.write_text(PAST[0])
    return str(path)


def arrays():
    """Return what stands in numpy files: members one after another, each with its own header."""
    import numpy as np

    found = []
    for columns in (SPARSE, {"matrix": np.eye(4)}):
        parts = []
        for name, values in columns.items():
            stream = io.BytesIO()
            np.save(stream, np.asarray(values))
            parts.append(name.encode() + b"|" + stream.getvalue())
        found.append(b"|next|".join(parts))
    return found


def archive(data):
    """Return members as one npz, checksums right, so that what is wrong lies inside."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        for part in data.split(b"|next|"):
            name, _, raw = part.partition(b"|")
            packed.writestr(f"{name.decode('latin-1')[:60]}.npy".lstrip("\0"), raw)
    return stream.getvalue()


def orders():
    """Return an order in each format that is read, by format; some take none but row-major."""
    from nidmap.rankmap.emit import emit, names

    machine, found = machine_once(), {}
    for form in names():
        strategy = "row-major" if form in ("hydra", "intel", "torchrun", "deepspeed") else "morton"
        made = nidmap.order(machine, "0-5", Job("stencil:4x6", 4), strategy=strategy)
        found[form] = emit(made, form).encode()
    return found


def targets():
    """Return all that is fuzzed, by name."""
    score = ("score", "-m", MACHINE, *GRID, "--order", "FILE", "--format")
    found = {
        "dump": command(dumps(), "machine", "check", "-m", "FILE"),
        "dump-twice": command(dumps(), "machine", "show", "-m", "FILE", "-m", "FILE"),
        "dump-free": command(dumps(), "nodes", "free", "-m", MACHINE, "--from", "FILE"),
        "dump-plan": command(dumps(), "plan", "-m", "FILE", "-N", "2", "--pattern", "ring"),
        "site": command(sites(), "site", "check", "FILE", name="site.toml"),
        "site-machine": command(sites(), "machine", "show", "-m", "FILE", name="site.toml"),
        "list": command(LISTS, "nodes", "fold", "--", "TEXT"),
        "list-file": command(LISTS, "nodes", "expand", "FILE"),
        "list-info": command(LISTS, "nodes", "info", "-m", "torus:4x4", "--", "TEXT"),
        "list-exclude": command(LISTS, "plan", "-m", MACHINE, "-N", "4", "--exclude", "FILE"),
        "jobs": command([x.encode() for x in PAST], "jobs", "-m", MACHINE, "FILE", "--json"),
        "jobs-toml": command([SHARES.encode()], "jobs", "-m", MACHINE, past_jobs(),
                             "--applications", "FILE", name="a.toml"),
        "spec": command(SPECS, "machine", "show", "-m", "TEXT"),
        "spec-plan": command(SPECS, "compare", "-m", "TEXT", "-N", "2"),
        "pattern": command(PATTERNS, "predict", "-m", MACHINE, *JOB, "--pattern", "TEXT"),
        "pattern-order": command(PATTERNS, "order", "-m", MACHINE, *JOB, "--pattern", "TEXT"),
        "npz": command(arrays(), "score", "-m", MACHINE, "--nodes", "0-3", "--ppn", "1",
                       "--pattern", "matrix:FILE", name="a.npz", pack=archive),
        "npz-raw": command([archive(raw) for raw in arrays()], "predict", "-m", MACHINE,
                           "--nodes", "0-3", "--pattern", "matrix:FILE", name="a.npz"),
        "line": Target(examples(), command_line),
        "question": Target([bytes(range(n)) for n in range(1, 9)], sensible),
        "page": Target(requests(), request),
        "live": Target([json.dumps(JOBS).encode(), *LISTS, *dumps()[-9:]], raises(live_file)),
        "counters": Target(COUNTERS, raises(link_counters)),
    }  # fmt: skip
    for kind, texts in TABLES.items():
        pattern = "sends:FILE" if kind == "sends" else "matrix:FILE"
        found[kind] = command(
            [text.encode() for text in texts], "score", "-m", MACHINE, "--nodes", "0-3",
            "--pattern", pattern, name=f"input.{kind}",
        )  # fmt: skip
    for form, seed in orders().items():
        found[f"order-{form}"] = command([seed], *score, form)
    return found
