# SPDX-License-Identifier: Apache-2.0
"""The API: the same answers as the command line's, in the form that it promises."""

import gzip
import json
import subprocess
import sys

import msgspec
import networkx
import numpy as np
import pytest

import nidmap
from nidmap.placement.topologies import router_coords
from nidmap.rankmap.predict import Job
from nidmap.web import figures, replies, requests
from nidmap.web.app import _PATHS, make_app
from nidmap.web.service import Service
from nidmap.web.snapshot import Offer
from tests.web.machines import in_states
from tests.web.serving import run_async, running, squeue, until


def cli(*argv, text=None):
    done = subprocess.run(
        [sys.executable, "-m", "nidmap", *argv],
        input=text, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    return done.stdout


def test_machine_columns_are_the_machine(site, small):
    found = site.ask("/api/v1/machine").json
    nodes = found["nodes"]
    assert found["count"] == len(small)
    assert nodes["name"] == small.names.tolist()
    assert nodes["nid"] == small.nid.tolist()
    assert nodes["coords"] == small.coords.T.tolist()
    assert nodes["router"] == small.router[:, 0].tolist()
    for name in ("role", "state", "mode", "features", "cores", "nics", "gpus"):
        values = np.array(nodes[name]["values"])[nodes[name]["codes"]]
        assert values.tolist() == getattr(small, name).tolist()
    assert found["links"]["kinds"] == ["green", "black", "blue"]
    assert "alltoall" in [p["example"] for p in found["choices"]["patterns"]]


def test_what_a_machine_can_be_planned_with_is_known_without_a_plan(small, monkeypatch):
    from nidmap.web.columns import document

    for search in (
        "blades._BladeSearch",
        "blades._free_places",
        "plain._take_along",
        "compact.compact",
    ):
        monkeypatch.setattr(f"nidmap.placement.planners.{search}", None)
    assert {"blades", "blades-linked", "hilbert"} <= {*document(small)["choices"]["strategies"]}


def test_layout_is_the_pictures_layout(site, small):
    from nidmap.web.layout import document

    whole = json.loads(json.dumps(document(small)))
    assert site.ask("/api/v1/layout").json == whole
    assert site.ask("/api/v1/layout?view=usual").json == whole, "a dragonfly has one view"
    assert site.ask("/api/v1/layout?view=switches").json == whole
    assert site.ask("/api/v1/layout?view=nope").status == 409
    assert site.ask("/api/v1/layout?view=switches&x=1").json == whole


@pytest.mark.parametrize("path", ["machine", "layout", "state", "jobs", "nodes?nodes=0-3"])
def test_gets_have_tags_and_are_packed(site, path):
    plain = site.ask(f"/api/v1/{path}")
    assert plain.status == 200
    assert plain.headers["content-type"] == "application/json"
    packed = site.ask(f"/api/v1/{path}", headers={"Accept-Encoding": "gzip"})
    if packed.headers.get("content-encoding"):
        assert gzip.decompress(packed.body) == plain.body
    else:
        assert len(plain.body) < 1200
    again = site.ask(f"/api/v1/{path}", headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert site.ask(f"/api/v1/{path}", headers={"If-None-Match": '"x"'}).status == 200
    head = site.ask(f"/api/v1/{path}", method="HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize("path", ["machine", "layout", "state", "jobs"])
@pytest.mark.parametrize(
    ("asked", "status", "packed"),
    [
        ({}, 200, False), ({"Accept-Encoding": "gzip"}, 200, True),
        ({"Accept-Encoding": "gzip;q=0, br"}, 200, False), ({"If-None-Match": "tag"}, 304, False),
        ({"If-None-Match": '"other", tag'}, 304, False), ({"If-None-Match": "*"}, 304, False),
        ({"If-None-Match": "junk"}, 200, False),
    ],
    ids=str,
)  # fmt: skip
def test_documents_are_negotiated(site, path, asked, status, packed):
    path = f"/api/v1/{path}"
    tag = site.ask(path).headers["etag"]
    head = {key: value.replace("tag", tag) for key, value in asked.items()}
    found = site.ask(path, headers=head)
    assert (found.status, found.headers["etag"]) == (status, tag)
    assert ("content-encoding" in found.headers) == packed
    assert site.ask(path, method="HEAD", headers=head).status == status
    wrong = site.ask(path, method="DELETE")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")


def test_shaheen2_is_small_on_the_wire(shaheen2):
    service = Service(shaheen2)
    for path, most in (("machine", 300_000), ("layout", 100_000)):
        assert len(run_async(service.document(f"/api/v1/{path}")).packed) <= most


def test_resolve(site):
    found = site.post("resolve", text="nid00003 oops 5-6")
    assert found.json["rows"] == [3, 5, 6]
    assert found.json["errors"][0]["column"] == 10
    long = " ".join(f"nid{k % 128:05d}" for k in range(5000))
    assert site.post("resolve", text=long).json["count"] == 128


MACHINE = "dragonfly:groups=4,chassis=2,blades=4,nodes=4"


@pytest.mark.parametrize(
    ("body", "argv"),
    [
        ({"strategy": "blades", "per_blade": 2}, ["--strategy", "blades", "--per-blade", "2"]),
        ({"strategy": "random", "seed": 5}, ["--strategy", "random", "--seed", "5"]),
        ({"pattern": "stencil:8x6", "ppn": 4, "bytes": 1e6},
         ["--pattern", "stencil:8x6", "--ppn", "4", "--bytes", "1e6", "--deadline", "300"]),
    ],
)  # fmt: skip
def test_a_plan_is_the_document_of_the_command(site, body, argv):
    ours = site.post("plan", count=12, **body).json
    assert "which nodes are free is not known" in ours["warnings"].pop()
    theirs = json.loads(cli("plan", "-m", MACHINE, "-N", "12", *argv, "--json"))
    assert ours == theirs


@pytest.mark.parametrize(
    ("nodes", "ppn", "pattern", "strategy"),
    [("0-7", 4, "fft:8x4", "morton"), ("0,9,3,30", 1, "stencil:2x2", "auto")],
)
def test_an_order_holds_the_document_of_the_command(site, nodes, ppn, pattern, strategy):
    job = {"nodes": nodes, "ppn": ppn, "pattern": pattern, "strategy": strategy}
    ours = site.post("order", **job).json
    argv = [word for name, value in job.items() for word in (f"--{name}", str(value))]
    theirs = json.loads(cli("order", "-m", MACHINE, *argv, "--json"))
    assert ours["order"] == theirs
    assert ("optimised" in theirs) == (strategy == "auto")
    assert ours["schema"] != theirs["schema"]


def test_nodes_as_json_are_the_document_of_the_command(site):
    ours = json.loads(site.post("emit", nodes="5,3", format="json").json["text"])
    assert ours == json.loads(cli("nodes", "info", "-m", MACHINE, "5,3", "--json"))


@pytest.mark.parametrize(
    ("spec", "count", "ppn", "pattern"),
    [
        ("minicray:dragonfly", 4, 1, "alltoall"),
        ("fattree:leaf=6,leaves=4,spines=3,links=2", 8, 1, "alltoall"),
    ],
)  # fmt: skip
def test_the_page_promises_what_the_command_does(spec, count, ppn, pattern):
    machine = nidmap.load_machine(spec)
    free = machine.compute & machine.free
    words = ["-N", str(count), "--ppn", str(ppn), "--pattern", pattern, "--json"]
    said = json.loads(cli("plan", "-m", spec, *words))
    wanted = requests.Plan(count=count, ppn=ppn, pattern=pattern)
    promised = [said["gain"][end] for end in ("low", "likely", "high")]
    planned = figures.plan(machine, Offer(free, machine.state), wanted)["gain"]
    assert [planned[end] for end in ("low", "likely", "high")] == pytest.approx(promised)
    asked = requests.Describe(
        nodes=said["nodelist"], ppn=ppn, pattern=pattern, slots=said["order"]["slots"] or []
    )
    shown = figures.describe(machine, Offer(free, machine.state), asked).default.gain
    assert [shown[end] for end in ("low", "likely", "high")] == pytest.approx(promised)


def test_what_auto_promises_comes_with_its_order(small):
    """Without the order that it was chosen with, a stencil on a torus takes three times as long."""
    spec = "torus:6x6x6"
    with running(nidmap.load_machine(spec)) as site:
        body = {"ppn": 2, "pattern": "stencil:12x12x3", "bytes": 1e6}
        found = site.post("plan", count=216, strategy="auto", **body).json
        order = found["order"]
        assert order["needed"]
        assert order["sorted_time_s"] > 1.5 * found["time_s"]
        job = {"nodes": found["nodelist"], **body}
        with_it = site.post("describe", slots=order["slots"], **job).json["prediction"]["time_s"]
        sorted_nodes = ",".join(sorted(found["nodes"]))
        without = site.post("describe", **{**job, "nodes": sorted_nodes}).json
        assert with_it == pytest.approx(found["time_s"])
        assert without["prediction"]["time_s"] == pytest.approx(order["sorted_time_s"])
        del job["bytes"]
        for form, name in (("mpich", "MPICH_RANK_ORDER"), ("slurm", "ranks.hosts")):
            saved = site.post("order", slots=order["slots"], format=form, **job).json
            assert saved["filename"] == name
            assert saved["order"]["slots"] == order["slots"]
            assert saved["text"]
        wrong = site.post("order", slots=order["slots"][:-1], **job)
        assert (wrong.status, "431 ranks for 432 slots" in wrong.json["detail"]) == (409, True)
        body |= {"orders": ["row-major"], "strategies": ["auto"]}
        rows = site.post("compare", count=216, **body).json["rows"]
        (auto,) = (row for row in rows if row["strategy"] == "auto")
        assert auto["own_order"]["sorted_time_s"] > 1.5 * auto["time_s"]
        assert sorted(auto["own_order"]["slots"]) == list(range(432))
        assert all(row["own_order"] is None for row in rows if row is not auto)


def test_compare_is_the_command_lines(site):
    ours = site.post("compare", count=12, strategies=["compact", "spread"], bytes=1e6).json
    said = cli("compare", "-m", MACHINE, "-N", "12", "--pattern", "alltoall", "--bytes", "1e6",
               "--strategies", "compact,spread", "--json")  # fmt: skip
    theirs = json.loads(said)
    assert ours["sentence"] == theirs["sentence"]
    for mine, row in zip(ours["rows"], theirs["rows"], strict=True):
        assert {key: mine[key] for key in row} == row
        assert len(mine["node_rows"]) == 12
        assert len(mine["links"]["source"]) <= 50
        assert mine["links"]["share"][:1] in ([], [1.0])


def test_describe_says_a_sentence(site):
    found = site.post("describe", nodes="0-7,40-47,100-103").json
    assert found["count"] == 20
    assert found["touches"] == {"group": 3, "chassis": 3, "blade": 5}
    assert found["sentence"].startswith("20 nodes in 3 groups, 5 blades; busiest: ")
    assert "times as fast as Slurm's own choice (topology/none)" in found["sentence"]
    gain = found["default"]["gain"]
    assert gain["low"] <= gain["likely"] <= gain["high"]
    assert found["default"]["ratio"] > 0
    matrix = found["prediction"]["matrix"]
    assert matrix["labels"] == ["g0", "g1", "g3"]
    assert np.array(matrix["load"]).shape == (3, 3)
    assert np.diag(matrix["seconds"]).tolist() == [0, 0, 0]


def test_the_sentences_busiest_link_is_the_predictions(site, small):
    rows = [*range(0, 8), *range(40, 48), *range(100, 104)]
    found = site.post("describe", nodes="0-7,40-47,100-103", bytes=1e6).json
    predicted = nidmap.predict(small, np.array(rows), Job("alltoall", bytes=1e6, ppn=1))
    seconds = predicted.loads.seconds()
    top = int(np.argmax(seconds))
    channels = predicted.loads.channels
    alike = seconds[(channels.kind == channels.kind[top]) & (seconds > 0)]
    assert f"at {seconds[top] / alike.mean():.1f} x the mean" in found["sentence"]
    assert found["prediction"]["time_s"] == pytest.approx(predicted.time_s)
    assert found["prediction"]["links"]["seconds"][0] == pytest.approx(seconds[top])
    unit = router_coords(small)[:, 0]
    mask = (unit[channels.source] == 0) & (unit[channels.target] == 1)
    between = float(predicted.loads.load[mask].sum())
    assert found["prediction"]["matrix"]["load"][0][1] == pytest.approx(between)


def test_one_node_has_a_sentence_too(site):
    found = site.post("describe", nodes="5").json
    assert found["sentence"].startswith("1 node in 1 group, 1 blade")


def test_a_pattern_that_does_not_fit_leaves_the_count(site):
    found = site.post("describe", nodes="0-5", pattern="fft:64x64").json
    assert found["sentence"] == "6 nodes in 1 group, 2 blades"
    assert "fft:64x64" in found["reason"]
    assert found["prediction"] is None


def test_order_is_the_command_lines(site):
    ours = site.post("order", nodes="0-7", ppn=4, pattern="fft:8x4", strategy="morton",
                     format="mpich").json  # fmt: skip
    assert ours["text"] == cli("order", "-m", MACHINE, "--nodes", "0-7", "--ppn", "4", "--pattern",
                               "fft:8x4", "--strategy", "morton", "--format", "mpich")  # fmt: skip
    slots = ours["order"]["slots"]
    assert sorted(slots) == list(range(32))
    assert ours["node_rows"] == [slot // 4 for slot in slots]
    offsets, ranks = ours["neighbours"]["offsets"], ours["neighbours"]["ranks"]
    assert sorted(ranks[offsets[5] : offsets[6]]) == [1, 4, 6, 7, 9, 13, 17, 21, 25, 29]


@pytest.mark.parametrize("form", ["nodelist", "lines", "nids", "hostfile", "sbatch", "json"])
def test_emit(site, form):
    found = site.post("emit", nodes="nid[00005,00003]", format=form).json
    assert found["count"] == 2
    assert found["text"].index("5") < found["text"].rindex("3")


def test_emit_refuses_a_format_of_another_scheduler(shaheen2):
    with running(shaheen2) as site:
        assert site.post("emit", nodes="12", format="sbatch").status == 200
        found = site.post("emit", nodes="12", format="pbs")
        assert found.status == 409
        assert "Slurm" in found.json["detail"] + found.json["hint"]


def test_hops_are_the_shortest_ways_of_the_graph(small):
    machine = nidmap.load_machine("torus:4x3x2,nodes=2")
    with running(machine) as site:
        found = site.ask("/api/v1/hops?from=nid00005").json
    graph = machine.to_networkx()
    far = networkx.single_source_shortest_path_length(graph, "nid00005")
    expected = [max(0, far[name] - 2) for name in machine.names.tolist()]
    assert found["hops"] == expected
    assert found["from"] == 5


def test_nodes_and_jobs_for_people(small, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(squeue((4711, "nid[00000-00003]", "run", "ann"), (9, "other1", "x", "bob")))
    with running(in_states(small, down=[9]), (str(path),)) as site:
        until(lambda: site.service.live.snapshot.source == "file")
        (one, other) = site.ask("/api/v1/nodes?nodes=3,9").json["nodes"]
        assert (one["name"], one["jobs"], one["state"]) == ("nid00003", ["4711"], "up")
        assert (other["state"], other["jobs"]) == ("down", [])
        assert one["coords"] == {"group": 0, "chassis": 0, "blade": 0, "node": 3}
        (job,) = site.ask("/api/v1/jobs").json["jobs"]
        assert job == {
            "id": "4711", "count": 4, "name": "run", "partition": "workq",
            "nodelist": "nid[00000-00003]", "ppn": 0,
        }  # fmt: skip
        state = site.ask("/api/v1/state")
        assert state.json["jobs"][0]["rows"] == "0-3"
        assert state.json["free"] == 128 - 4 - 1
        assert int(state.headers["age"]) >= 0
        chosen = site.post("plan", count=8, strategy="slurm-none").json
        assert min(chosen["nids"]) == 10, "busy and down nodes are not planned on"
        pinned = site.post("plan", count=2, include="3")
        assert pinned.status == 409
        assert "nid00003" in pinned.json["detail"]


@pytest.mark.parametrize(
    ("name", "body", "status", "word"),
    [
        ("plan", {"count": 5000}, 409, "4872 missing"),
        ("plan", {"count": 4, "strategy": "nope"}, 409, "nope"),
        ("plan", {"count": 0}, 400, "count"),
        ("plan", {"count": 4, "extra": 1}, 400, "extra"),
        ("plan", {"count": "4"}, 400, "count"),
        ("plan", {}, 400, "count"),
        ("plan", {"count": 4, "from": "nid00001"}, 409, "3 missing"),
        ("describe", {"nodes": "nid77777"}, 409, "nid77777"),
        ("describe", {"nodes": ""}, 400, "nodes"),
        ("compare", {"count": 4, "strategies": ["x"] * 9}, 400, "strategies"),
        ("compare", {"count": 4, "ppn": 4096, "pattern": "ring", "orders": ["zzz"]}, 409, "zzz"),
        ("order", {"nodes": "0-3", "format": "nope"}, 409, "nope"),
        ("order", {"nodes": "0-3", "strategy": "boxes:../../x"}, 409, "boxes"),
        ("emit", {"nodes": "0-3", "format": "../../etc"}, 409, "etc"),
        ("export", {"format": "exe"}, 400, "format"),
        ("export", {"view": "nope"}, 409, "nope"),
        ("export", {"nodes": "nid99999"}, 409, "nid99999"),
    ],
)
def test_errors_say_what_is_wrong(site, name, body, status, word):
    found = site.post(name, **body)
    assert found.status == status
    assert found.headers["content-type"] == "application/problem+json"
    said = found.json
    assert said["status"] == status
    assert word in said["detail"] + said["hint"]
    assert "Traceback" not in found.body.decode()


def test_patterns_that_read_files_are_refused(site, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET 1 2\n")
    for kind in ("matrix:", "graph:", " graph:", "measured:", "sends:"):
        pattern = f"{kind}{secret}"
        for name, body in (
            ("describe", {"nodes": "0-3"}), ("compare", {"count": 4}),
            ("order", {"nodes": "0-3"}), ("plan", {"count": 4}),
        ):  # fmt: skip
            found = site.post(name, pattern=pattern, **body)
            text = found.body.decode()
            assert "TOPSECRET" not in text
            assert "the page does not allow" in text


def test_nodes_text_is_never_a_file(site, tmp_path):
    listed = tmp_path / "list"
    listed.write_text("nid00001\n")
    for text in (str(listed), f"@{listed}", "-"):
        assert site.post("describe", nodes=text).status == 409
        assert not site.post("resolve", text=text).json["ok"]


def test_openapi_describes_every_path(site):
    found = site.ask("/openapi.json").json
    rules = {
        rule.rule: rule.methods - {"HEAD"}
        for rule in make_app(site.service).url_map.iter_rules()
        if rule.rule.startswith("/api/")
    }
    ready = {path for path in found["paths"] if site.service.has_document(path)}
    assert len(ready) == 4
    assert not ready & set(rules), "each path has one answerer"
    rules |= {path: {"GET"} for path in ready}
    assert set(found["paths"]) == set(rules)
    for path, methods in rules.items():
        assert {m.upper() for m in found["paths"][path]} == methods


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("machine", None), ("layout", None), ("state", None), ("jobs", None), ("slowdowns", None),
        ("nodes?nodes=1-3", None), ("hops?from=1", None), ("status", None),
        ("resolve", {"text": "nid00001 nope"}),
        ("describe", {"nodes": "1-9", "groups": True}), ("describe", {"nodes": "1-2", "ppn": 9999}),
        ("compare", {"count": 4, "strategies": ["compact"]}),
        ("plan", {"count": 4}), ("order", {"nodes": "1-4", "strategy": "row-major"}),
        ("finish", {"question": "q"}), ("emit", {"nodes": "1-4"}),
    ],
)  # fmt: skip
def test_answers_are_as_they_are_described(site, path, body):
    """Each is one of its Struct; most may have no field that the description does not have."""
    (described,) = (p for p in _PATHS if p.url == f"/api/v1/{path.partition('?')[0]}")
    reply = site.ask(f"/api/v1/{path}", body=body)
    kind = replies.Problem if reply.status >= 400 else described.reply
    assert (reply.status >= 400) == (body is not None and body.get("ppn") == 9999)
    assert msgspec.json.decode(reply.body, type=kind)


def test_the_description_of_answers_is_made_of_their_structs(site):
    found = site.ask("/openapi.json").json
    parts = found["components"]["schemas"]
    for path in _PATHS:
        if path.reply is None:
            continue
        responses = found["paths"][path.url][path.method.lower()]["responses"]
        (schema,) = (kind["schema"] for kind in responses["200"]["content"].values())
        part = parts[schema["$ref"].rpartition("/")[2]]
        fields = {field.encode_name for field in msgspec.structs.fields(path.reply)}
        assert set(part["properties"]) == fields
        assert responses["400"]["content"]["application/problem+json"]["schema"] == {
            "$ref": "#/components/schemas/Reply.Problem"
        }


def test_unknown_paths_and_methods(site):
    assert site.ask("/api/v1/nope").status == 404
    assert site.ask("/static/../app.py").status == 404
    assert site.ask("/static/%2e%2e/app.py").status == 404
    wrong = site.ask("/api/v1/plan")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert site.ask("/api/v1/machine", method="DELETE").status == 405
    assert site.ask("/api/v1/plan", body=b"{", method="POST").status == 400
    text = site.ask("/api/v1/plan", body=b"{}", method="POST", headers={"Content-Type": "text/x"})
    assert text.status == 415
