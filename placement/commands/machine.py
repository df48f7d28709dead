# SPDX-License-Identifier: Apache-2.0
"""``nidmap machine``: show, export and check a machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement import exports
from nidmap.placement.check import check_sources
from nidmap.placement.commands.common import json_option, machine_option
from nidmap.placement.errors import UsageError, printable
from nidmap.placement.load import open_sources
from nidmap.placement.machine import Machine
from nidmap.placement.machine_option import machine_from, machine_specs
from nidmap.placement.records import Finding
from nidmap.placement.support.quantities import counted, plural
from nidmap.placement.support.reading import format_of_name
from nidmap.placement.support.tables import align_columns
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.topologies import wiring_text
from nidmap.placement.ui import say
from nidmap.placement.views import summarise

if TYPE_CHECKING:
    from nidmap.placement.load import Sources

#: Graph and table formats by file suffix; listed here so that help loads none of them.
SUFFIXES = {
    **{f".{name}": name for name in ("graphml", "gexf", "gml", "edgelist", "csv")},
    ".json": "node-link",
    ".edges": "edgelist",
    ".conf": "topology-conf",
    ".yaml": "topology-yaml",
    ".yml": "topology-yaml",
}


@click.group()
def machine() -> None:
    """Show, export and check a machine.

    \b
    nidmap machine show -m shaheen2
    nidmap machine show -m xtprocadmin.txt -m rtr.txt.gz --json
    nidmap machine export -m dragonfly:groups=9,chassis=6,blades=16,nodes=4 -o m.graphml
    nidmap machine check -m xtprocadmin.txt
    """


@machine.command()
@machine_option
@json_option
def show(specs: tuple[str, ...], as_json: bool) -> None:
    """Describe a machine: its network, nodes, holes, links and wiring.

    \b
    nidmap machine show -m shaheen2
    nidmap machine show -m edison.rtr_interconnect.txt.gz
    nidmap machine show -m torus:8x8x8,nodes=2 --json
    """
    summary = summarise(machine_from(specs))
    summary["taken"] = click.get_current_context().meta.get("machine_taken", "")
    if as_json:
        write_output(to_json(summary))
        return
    facts = _summary_lines(summary)
    width = max(len(word) for word, _ in facts)
    lines = "".join(f"{word:<{width}}  {text}\n" for word, text in facts)
    write_output(f"{lines}\n{align_columns(_link_rows(summary))}")


def _summary_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the summary as pairs of label and text."""
    nodes, fabric = summary["nodes"], summary["fabric"]
    rows = [
        ("machine", summary["name"]),
        ("network", f"{summary['kind']} ({fabric})" if fabric else summary["kind"]),
        ("wiring", summary["wiring"]),
        *_level_words(summary),
        ("routers", str(summary["routers"])),
        ("compute", _node_words(nodes, "compute", f", {nodes['free']} free")),
    ]
    if nodes["service"]:
        rows.append(("service", _node_words(nodes, "service")))
    if summary["holes"]:
        holes = summary["holes"].items()
        rows.append(("holes", ", ".join(counted(count, level) for level, count in holes)))
    rails = summary["attachments"]
    if rails["most"] > 1:
        text = f"up to {rails['most']} per node, on {rails['routers']} of the routers"
        rows.append(("rails", f"{text}; a node's place is that of its first"))
    rows += [("in a node", _hardware_words(row)) for row in summary["hardware"]]
    rows += [("inside one", text) for text in summary["inside"]]
    if summary["switches"]:
        switches = summary["switches"]
        text = f"{switches['kind']}: {switches['leaves']} leaves, {switches['levels']} levels"
        loose = switches["nodes_on_none"]
        rows.append(("Slurm's", f"{text}, {counted(loose, 'node')} on no leaf" if loose else text))
    if summary["scheduler"]:
        rows.append(("scheduler", summary["scheduler"]))
    rows.append(("from", ", ".join(summary["sources"])))
    if summary["taken"]:
        rows.append(("taken", summary["taken"]))
    rows += [("note", note) for note in summary["notes"]]
    return [(word, printable(text, 500)) for word, text in rows]


def _level_words(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how much of each level is present; a torus's axes are not nested."""
    rows = []
    torus, above = summary["kind"] == "torus", ""
    for level in summary["levels"]:
        name, present, extent = level["level"], level["present"], level["extent"]
        above = "router" if torus and name == "node" else above
        text = f"{present}, up to {extent} per {above}" if above else f"{present} of {extent}"
        rows.append((plural(name), text))
        above = "" if torus else name
    return rows


def _node_words(nodes: dict[str, Any], role: str, more: str = "") -> str:
    states = nodes["states"].get(role, {})
    shown = ", ".join(f"{count} {state}" for state, count in states.items())
    return counted(nodes[role], "node") + more + ("" if set(states) <= {"up"} else f": {shown}")


def _hardware_words(row: dict[str, Any]) -> str:
    words = [
        counted(row["sockets"], "socket") if row["sockets"] else "",
        counted(row["cores"], "core") if row["cores"] else "",
        f"{row['memory_mb'] / 1024:.0f} GiB" if row["memory_mb"] else "",
        counted(row["nics"], "NIC") if row["nics"] else "",
        counted(row["gpus"], "GPU") if row["gpus"] else "",
        row["features"],
    ]
    return f"{row['nodes']} x " + ", ".join(filter(None, words))


def _link_rows(summary: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the table of links: a header, then one row per class."""
    end = summary["attachments"]
    rates = "-".join(dict.fromkeys(f"{g:g}" for g in end["gbs_range"] or ()))
    figures = (rates, f"{end['gbs_total']:g}") if rates else ("unlimited", "")
    rows: list[tuple[str, ...]] = [
        ("class", "router pairs", "links", "GB/s each", "GB/s in all"),
        (end["class"], "", str(end["links"]), *figures),
    ]
    for row in summary["links"]:
        per_link = "-".join(dict.fromkeys(f"{g:g}" for g in row["gbs"] or ())) or "unknown"
        total = "" if row["gbs_total"] is None else f"{row['gbs_total']:g}"
        rows.append((row["class"], str(row["router_pairs"]), str(row["links"]), per_link, total))
    return rows


@machine.command()
@machine_option
@click.option("--format", "name", metavar="NAME", help="See below; default: by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE, not to stdout.")
def export(specs: tuple[str, ...], name: str | None, output: str | None) -> None:
    """Write a machine in a format that other programs read.

    Graphs: graphml, gexf, gml, node-link (JSON), edgelist. Tables: csv
    (nodes), links-csv, routers-csv. For Slurm, and read back by
    nidmap: topology-conf, topology-yaml.

    \b
    nidmap machine export -m shaheen2 -o shaheen2.graphml
    nidmap machine export -m xtprocadmin.txt --format links-csv -o links.csv
    nidmap machine export -m shaheen2 --format topology-conf
    """
    chosen = name or format_of_name(output, SUFFIXES, "", "--format")
    if not chosen:
        raise UsageError("no format given", f"use --format, or -o with {', '.join(SUFFIXES)}")
    built = machine_from(specs)
    write_output(exports.write(built, chosen), output)
    say(f"{built.name} as {chosen}: {counted(len(built), 'node')}, wiring {wiring_text(built)}")


@machine.command()
@machine_option
@json_option
@click.pass_context
def check(ctx: click.Context, specs: tuple[str, ...], as_json: bool) -> None:
    """List the inconsistencies in a machine's dumps; exit code 1 if there are any.

    Faults contradict something: HEX that is not the NID, a NID or cname twice,
    a NID that is not its cname's, coordinates outside, links with one end,
    more links to other groups than a router has ports. Remarks (holes, absent
    cabinets, assumptions) are normal and do not fail.

    \b
    nidmap machine check -m xtprocadmin.txt
    nidmap machine check -m shaheen2 -m xtprocadmin.txt
    nidmap machine check -m xtprocadmin.txt -m rtr.txt.gz --json
    """
    sources = open_sources(*machine_specs(specs))
    built, findings = check_sources(sources)
    report = _check_document(sources, built, findings)
    if as_json:
        write_output(to_json(report))
    else:
        write_output("".join(f"{line}\n" for line in [*map(str, findings), _closing_line(report)]))
    ctx.exit(1 if report["faults"] else 0)


def _check_document(
    sources: Sources, machine: Machine | None, findings: list[Finding]
) -> dict[str, Any]:
    return {
        "machine": machine.name if machine is not None else None,
        "nodes": len(machine) if machine is not None else None,
        "wiring": wiring_text(machine) if machine is not None else None,
        "faults": [asdict(x) for x in findings if x.fault],
        "remarks": [asdict(x) for x in findings if not x.fault],
        "lines": [
            {"source": d.source, "format": d.format, "lines": d.counts.total, **asdict(d.counts)}
            for d in sources.dumps
        ],
    }


def _closing_line(report: dict[str, Any]) -> str:
    """Return the line that summarises the report."""
    count = (
        f"{counted(len(report['faults']), 'fault')}, {counted(len(report['remarks']), 'remark')}"
    )
    if report["machine"] is None:
        return f"no machine: {count}"
    name = printable(report["machine"], 500)
    return f"{name}: {counted(report['nodes'], 'node')}, wiring {report['wiring']}; {count}"
