"""Reports: what several runs become, and that nothing in them is live."""

import csv
import io
import json
import math
import re

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import NidmapError, UsageError
from placement.load import load_machine
from tests.effort import examples
from workloads.ab.running import schedule
from workloads.report.command import html_text, report, spreadsheet
from workloads.report.sections import Section, build, slots_of_arm
from workloads.results import save


def run(folder, workload, ranks, labels, seconds, name=None, **header):
    """Write one run: five repetitions of each phase around its seconds, one cold."""
    rows = [
        {
            "warmup": int(k == 0),
            "repetition": k,
            **labels,
            "phase": phase,
            "min": s * 0.8,
            "mean": s * 0.9,
            "max": s * (50 if k == 0 else 0.9 + 0.05 * k),
        }
        for k in range(5)
        for phase, s in seconds.items()
    ]
    path = str(folder / (name or f"{workload}-{ranks}.csv"))
    given = {"workload": workload, "ranks": ranks, "nodes": ranks // 4, "ppn": 4, **header}
    save(path, given, rows)
    return path


def parts(paths, machine=None, breaks=()):
    said, sections = build(paths, machine, 0.95, breaks)
    return said, {section.name: section for section in sections}


def test_strong_and_weak_series_are_told_apart(tmp_path):
    paths = [
        run(tmp_path, "fft", p, {"n": "64x64x64", "grid": f"{p}x1"}, {"total": 8 / p})
        for p in (4, 8, 16)
    ]
    paths += [
        run(tmp_path, "sort", p, {"items": 1000}, {"total": 1.0, "Exchange": 0.5}) for p in (4, 8)
    ]
    _, found = parts(paths)
    strong = found["strong"].rows
    assert [(r["workload"], r["ranks"]) for r in strong] == [("fft", p) for p in (4, 8, 16)]
    assert [r["efficiency"] for r in strong] == pytest.approx([1, 1, 1])
    assert [r["speedup"] for r in strong] == pytest.approx([1, 2, 4])
    weak = found["weak"].rows
    assert {(r["workload"], r["phase"]) for r in weak} == {("sort", "total"), ("sort", "Exchange")}
    assert all(r["efficiency"] == pytest.approx(1) for r in weak)
    assert found["gamma"].rows[0]["gamma"] == pytest.approx(1.0)


def test_warm_ups_are_in_no_table(tmp_path):
    _, found = parts([run(tmp_path, "sort", 4, {"items": 9}, {"total": 1.0})])
    (row,) = found["times"].rows
    assert (row["best_s"], row["samples"]) == (pytest.approx(0.95), 4)
    assert row["median_s"] == pytest.approx(1.025)


def test_gamma_is_fitted_in_one_piece_and_in_two(tmp_path):
    times = {p: 3.0 * p**-0.84 for p in (4, 8, 16, 32, 64)}
    times |= {p: 1.105 * p**-0.6 for p in (128, 256, 512, 1024)}
    paths = [run(tmp_path, "fft", p, {"n": "64x64x64"}, {"total": t}) for p, t in times.items()]
    _, found = parts(paths, breaks=(64,))
    by_piece = {row["where"]: row for row in found["gamma"].rows}
    assert by_piece["within 64 ranks"]["gamma"] == pytest.approx(0.84)
    assert by_piece["beyond 64 ranks"]["gamma"] == pytest.approx(0.6)
    assert 0.6 < by_piece[""]["gamma"] < 0.84
    assert by_piece[""]["gamma_low"] < by_piece[""]["gamma"] < by_piece[""]["gamma_high"]
    # The machine's own levels: 4 nodes of 4 ranks a leaf.
    _, found = parts(paths, load_machine("fattree:leaf=16,leaves=16,spines=8"))
    assert any(row["where"].startswith("within") for row in found["gamma"].rows)


def measured_ab(folder, name, launch, ratio, size=1024, members=(0, 2, 1, 3)):
    """Write one launch of an A/B measurement whose second arm is so many times faster."""
    arms = [
        {"name": "default", "order": "default", "nodes": "", "members": [0, 1, 2, 3]},
        {"name": "grid", "order": "row-major", "nodes": "", "members": list(members)},
    ]
    arms = [{**arm, "control": "", "notes": [], "ranks": 4} for arm in arms]
    rows = [
        {
            "launch": launch,
            "block": block,
            "visit": visit,
            "arm": arms[arm]["name"],
            "repetition": 0,
            "warmup": int(block == 0),
            "phase": phase,
            "max": 1e-3 * (1 if arm == 0 else 1 / ratio) * (1 + 0.002 * ((block * 7 + visit) % 5)),
        }
        for block, turn in enumerate(schedule(2, 9, launch))
        for visit, arm in enumerate(turn)
        for phase in ("communication", "total")
    ]
    header = {
        "workload": "stencil",
        "workload_options": {"bytes": size},
        "pattern": "stencil:2x2",
        "bytes": size,
        "machine": "torus:2x2",
        "ranks": 4,
        "nodes": 4,
        "hosts": ["nid00000", "nid00003", "nid00002", "nid00001"],
        "counts": [1, 1, 1, 1],
        "arms": arms,
    }
    save(str(folder / name), header, rows)
    return str(folder / name)


def test_launches_are_pooled_and_predictions_stand_beside(tmp_path):
    paths = [measured_ab(tmp_path, f"ab-{k}.csv", f"l{k}", 1.5) for k in range(3)]
    said, found = parts(paths, load_machine("torus:2x2"))
    (row,) = [r for r in found["ab"].rows if r["phase"] == "communication"]
    assert (row["launches"], row["blocks"]) == (3, 24)
    assert row["ratio"] == pytest.approx(1.5, rel=0.01)
    assert row["verdict"] == "faster"
    assert said == [s for s in said if s.startswith("stencil bytes=1024: grid against default")]
    first, second = found["predicted"].rows
    assert first["predicted_ratio"] == 1.0
    # On the ring 0 1 3 2 of nodes 0, 3, 2, 1 the default order sends across both ways.
    assert second["predicted_ratio"] > 0
    assert second["measured_ratio"] == row["ratio"]


def test_what_cannot_be_predicted_is_said(tmp_path):
    said, found = parts([measured_ab(tmp_path, "ab.csv", "l", 1.5)], load_machine("torus:1x2"))
    assert "predicted" not in found
    assert any(line.startswith("No prediction for") for line in said)


@given(st.data())
def test_an_arm_keeps_its_ranks_on_their_nodes(data):
    hosts = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12))
    members = data.draw(st.permutations(range(len(hosts))))
    members = members[: data.draw(st.integers(1, len(hosts)))]
    names, counts, slots = slots_of_arm(hosts, members)
    at = [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
    assert sorted(slots) == list(range(len(members)))
    assert [at[slot] for slot in slots] == [hosts[rank] for rank in members]


def test_the_page_needs_nothing_else_and_has_the_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="extra [plot]")
    paths = [measured_ab(tmp_path, f"ab-{k}.csv", f"l{k}", 1.2, 1 << k) for k in range(3)]
    paths += [
        run(tmp_path, "fft", p, {"n": "64x64"}, {"total": 8 / p, "communication": 3 / p})
        for p in (4, 8, 16, 32)
    ]
    labels = {"kind": "alltoall", "bytes": 8, "off_node": 16}
    paths.append(run(tmp_path, "alltoall", 8, labels, {"total": 1e-5}))
    html, table = tmp_path / "r.html", tmp_path / "r.csv"
    words = [*paths, "-m", "torus:2x2", "-o", str(html), "-o", str(table)]
    done = CliRunner().invoke(report, words, catch_exceptions=False)
    assert done.exit_code == 0
    text = html.read_text()
    assert text.count("<svg") == 2 + 1 + 1 + 1  # intervals, by size; scaling; gamma; bandwidth
    assert not re.search(r"<script|<link|<img|url\(http|src=['\"]http|@import", text)
    again = CliRunner().invoke(report, [*paths, "-m", "torus:2x2", "-o", str(html)])
    assert again.exit_code == 0
    assert html.read_text() == text  # the same data make the same file
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {row["section"] for row in rows} >= {"runs", "ab", "predicted", "strong", "times"}


@examples(60)
@given(st.text(max_size=30))
def test_no_stored_text_is_live_in_html_or_csv(text):
    section = Section("times", "Times", "", [{"case": text, "median_s": 0.5, "count": -3}])
    page = html_text(text, [text], [section])
    bare = html_text("", [""], [Section("times", "Times", "", [{"case": "", "median_s": 0.5}])])
    tags = re.compile(r"<[a-z!/]")
    assert len(tags.findall(page)) <= len(tags.findall(bare)) + 12
    for evil in ("<script", "<img", "<svg"):
        assert page.count(evil) == bare.count(evil)
    (row,) = csv.DictReader(io.StringIO(spreadsheet([section])))
    assert not row["case"].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert row["count"] == "-3"


def test_formulas_and_markup_are_disarmed():
    rows = [{"case": '=HYPERLINK("x")'}, {"case": "<script>alert(1)</script>\x1b[31m"}]
    section = Section("times", "T", "", rows)
    assert "'=HYPERLINK" in spreadsheet([section])
    page = html_text("<b>", ["<i>"], [section])
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "&lt;i&gt;" in page


def test_wrong_files_are_one_error(tmp_path):
    wrong = tmp_path / "dump.txt"
    wrong.write_text("nid00001 up\n")
    with pytest.raises(NidmapError, match="no samples of nidmap bench"):
        build([str(wrong)], None, 0.95)
    save(str(tmp_path / "a.csv"), {"workload": "x", "ranks": 1, "nodes": 1}, [{"a": 1}])
    with pytest.raises(NidmapError, match="without the column phase"):
        build([str(tmp_path / "a.csv")], None, 0.95)
    save(str(tmp_path / "b.csv"), {"workload": "x"}, [])
    with pytest.raises(NidmapError, match="does not say ranks"):
        build([str(tmp_path / "b.csv")], None, 0.95)
    with pytest.raises(UsageError, match="reports are written as"):
        CliRunner().invoke(report, ["x.csv", "-o", "r.pdf"], catch_exceptions=False)


def test_text_and_json_go_to_stdout(tmp_path):
    path = run(tmp_path, "sort", 4, {"items": 9}, {"total": 0.25})
    text = CliRunner().invoke(report, [path]).output
    assert "1 run of sort." in text
    assert "256 ms" in text
    document = json.loads(CliRunner().invoke(report, [path, "--json"]).output)
    assert document["schema"] == "nidmap.bench.report/1"
    assert math.isclose(document["times"][0]["median_s"], 0.25 * 1.025)
