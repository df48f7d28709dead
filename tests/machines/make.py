"""Makes the golden machines beside this file: ``python -m tests.machines.make``.

Each is a folder with one or more dumps (``source.…``) and ``expected.json``,
what they are: worked out here from the cells that the dumps are made of, by
plain loops over the published rules, not by the code under test. Machines
that are incoherent on purpose say which line is to blame.
"""

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

from tests.placement import machine_shapes as shapes

HERE = Path(__file__).parent
MACHINES = {}


def golden(function):
    """Register a machine by its function's name."""
    MACHINES[function.__name__.replace("_", "-")] = function
    return function


def coherent(files, cells, kind, extents, **more):
    """Describe a machine by its cells: {name: (nid, coordinates)}."""
    names = sorted(cells, key=lambda name: cells[name][0])
    shown = names[:: max(1, len(names) // 7)]
    expected = {
        "kind": kind,
        "extents": list(extents),
        "nodes": len(cells),
        "sample": {name: {"nid": cells[name][0], "coords": list(cells[name][1])} for name in shown},
    }
    return files, expected | more


def incoherent(files, kind, line, source=None, **more):
    """Describe a machine that must be refused, at this line, for this kind of fault."""
    blamed = source or next(iter(files))
    return files, {"refused": {"kind": kind, "line": line, "source": blamed}} | more


def totals(links):
    """Return {class: [router pairs, links]} of a Counter of (a, b, class)."""
    pairs, count = Counter(), Counter()
    for (_, _, kind), n in links.items():
        pairs[kind] += 1
        count[kind] += n
    return {kind: [pairs[kind], count[kind]] for kind in sorted(pairs)}


def nids(cells):
    """Return {nidNNNNN: (nid, coordinates)} of Cray cells."""
    return {f"nid{nid:05d}": (nid, at) for nid, _, at in cells}


def on_torus(cells):
    """Return the same for XE cells: the node's place on its Gemini added."""
    return {f"nid{nid:05d}": (nid, (*at, int(name[-1]) % 2)) for nid, name, at in cells}


# --- Cray XC -------------------------------------------------------------------


def xc(columns, rows, absent=(), slots=range(16), **more):
    return shapes.xc_cells(columns, rows, absent, keep=lambda c: c[2][2] in slots, **more)


def xc_expected(files, cells, groups, **more):
    links = totals(shapes.aries_links({at[:3] for _, _, at in cells}))
    extents = (groups, 6, 16, 4)
    return coherent(files, nids(cells), "dragonfly", extents, links=links, **more)


@golden
def xc_two_groups_with_holes():
    cells = [c for c in xc(4, 1) if not (c[2][2] == 0 and c[2][3] in (0, 3))]
    cells = [c for c in cells if c[2][:3] != (1, 4, 7)]
    service = {nid for nid, _, at in cells if at[2] == 0}
    states = {cells[9][0]: "down", cells[30][0]: "admindown"}
    text = shapes.xtprocadmin(cells, service, states)
    files = {"source.xtprocadmin": text}
    holes = {"blade": 1, "node": 24}
    free = len(cells) - len(service) - 2
    return xc_expected(files, cells, 2, holes=holes, free=free, service=len(service))


@golden
def xc_absent_cabinets():
    cells = xc(6, 3, absent={(2, 1), (3, 1), (5, 2)}, slots=(3, 4, 15))
    cells = [c for c in cells if c[2][3] == 2]
    files = {"source.txt": shapes.xtprocadmin(cells)}
    groups = {at[0] for _, _, at in cells}
    chassis = {at[:2] for _, _, at in cells}
    holes = {
        "group": 9 - len(groups),
        "chassis": 6 * len(groups) - len(chassis),
        "blade": 13 * len(chassis),
        "node": 3 * len(cells),
    }
    return xc_expected(files, cells, 9, holes=holes)


@golden
def xc_one_blade():
    cells = [c for c in xc(2, 1) if c[2][:3] == (0, 4, 9)]
    return xc_expected({"source": shapes.xtprocadmin(cells)}, cells, 1)


@golden
def xc_far_cabinets():
    cells = [c for c in xc(110, 12) if c[1].startswith("c109-11c") and c[2][2] < 4]
    cells += [c for c in xc(110, 12) if c[1].startswith("c0-10c1")]
    cells.sort()
    return xc_expected({"source.txt": shapes.xtprocadmin(cells)}, cells, 12 * 55)


@golden
def xc_without_header():
    cells = xc(4, 2, slots=(0, 1))
    text = shapes.xtprocadmin(cells).split("\n", 1)[1]
    return xc_expected({"source.txt": text}, cells, 4)


@golden
def xc_shuffled():
    cells = xc(4, 2, slots=(6, 9))
    text = shapes.xtprocadmin(cells[::-3] + cells[-2::-3] + cells[-3::-3])
    return xc_expected({"source.txt": text}, cells, 4)


@golden
def xc_system_database():
    cells = xc(4, 2, slots=(0, 13))[:120]
    return xc_expected({"source.xtdb2proc": shapes.xtdb2proc(cells, {0, 1})}, cells, 3, service=2)


@golden
def xc_meshcoords():
    cells = [c for c in xc(4, 3, slots=(1, 2)) if c[2][3]]
    return xc_expected({"source.meshcoords": shapes.meshcoords(cells, 68)}, cells, 6)


@golden
def xc_two_dumps():
    cells = xc(4, 2, slots=(1, 2, 3))
    files = {
        "source.a.xtprocadmin": shapes.xtprocadmin(cells, states={4: "down"}),
        "source.b.meshcoords": shapes.meshcoords(cells[:40], 32),
    }
    return xc_expected(files, cells, 4, free=len(cells) - 1)


def rtr(cells, columns, damage=None):
    routers = {at[:3] for _, _, at in cells}
    return shapes.rtr_aries(routers, shapes.aries_links(routers), columns, damage)


@golden
def xc_link_list():
    cells = xc(4, 2, slots=(0, 1, 2, 3))
    return xc_expected({"source.rtr.gz": rtr(cells, 4)}, cells, 4, wiring="links of")


@golden
def xc_nodes_and_links():
    cells = [c for c in xc(4, 2, absent={(3, 1)}, slots=(0, 1, 2)) if c[2][3] in (1, 2)]
    files = {
        "source.a.xtprocadmin": shapes.xtprocadmin(cells, {1, 2}),
        "source.b.rtr.gz": rtr(cells, 4),
    }
    return xc_expected(files, cells, 4, wiring="links of", service=2)


@golden
def xc_and_slurm():
    cells = xc(4, 1, slots=(5, 6))
    states = [(f"nid{nid:05d}", "idle" if nid % 3 else "alloc") for nid, _, _ in cells[:50]]
    free = sum(state == "idle" for _, state in states)
    files = {
        "source.a.xtprocadmin": shapes.xtprocadmin(cells),
        "source.b.sinfo": shapes.sinfo(states),
    }
    return xc_expected(files, cells, 2, free=free)


# --- Cray XE -------------------------------------------------------------------


def xe_expected(files, cells, extents, tiles=1, **more):
    links = {k: [p, n * tiles] for k, (p, n) in totals(shapes.torus_links(extents)).items()}
    return coherent(files, on_torus(cells), "torus", (*extents, 2), links=links, **more)


@golden
def xe_by_cnames():
    cells = [c for c in shapes.xe_cells(4, 3) if c[0] % 2 == 0][::2]
    return xe_expected({"source.xtprocadmin": shapes.xtprocadmin(cells)}, cells, (4, 6, 24))


@golden
def xe_with_the_old_header():
    cells = shapes.xe_cells(3, 2)[::3]
    head = "   NID    (HEX)    NODENAME     TYPE ARCH        OS CORES  STATUS     MODE\n"
    rest = "compute   xt       CNL    16      up    batch\n"
    rows = [f"{nid:6d} {hex(nid):>8s} {name:>11s}  {rest}" for nid, name, _ in cells]
    text = head + "".join(rows)
    return xe_expected({"source.txt": text}, cells, (3, 4, 24), cores=16)


@golden
def xe_coordinates():
    cells = shapes.xe_cells(3, 2)
    return xe_expected({"source.txt": shapes.coordinate_file(cells)}, cells, (3, 4, 24))


@golden
def xe_numbered_differently():
    cells = [(1000 - nid, name, (x, y, z)) for nid, name, (x, y, z) in shapes.xe_cells(2, 1)]
    cells = sorted(c for c in cells if c[2][2] < 8)
    files = {
        "source.a.txt": shapes.coordinate_file(cells),
        "source.b.txt": shapes.xtprocadmin(cells, states={cells[0][0]: "down"}),
    }
    return xe_expected(files, cells, (2, 2, 8), free=len(cells) - 1)


@golden
def xe_system_map():
    cells = shapes.xe_cells(2, 2)
    return xe_expected({"source.map": shapes.system_map(cells)}, cells, (2, 4, 24))


@golden
def xe_link_list():
    cells = shapes.xe_cells(3, 1)
    files = {"source.rtr.gz": shapes.rtr_gemini(cells, (3, 2, 24), tiles=2)}
    return xe_expected(files, cells, (3, 2, 24), tiles=2, wiring="links of")


# --- HPE Cray EX ---------------------------------------------------------------


def ex_expected(files, nodes, at, extents, **more):
    cells = {f"nid{nid:06d}": (nid, place) for (_, nid, _), place in zip(nodes, at, strict=True)}
    return coherent(files, cells, "dragonfly", extents, **more)


@golden
def ex_a_cabinet_a_group():
    nodes = shapes.ex_nodes([1000, 1001, 1004])
    at = [(i // 32, i % 32 // 16, i % 16) for i in range(96)]
    return ex_expected({"source.json": shapes.sls(nodes)}, nodes, at, (3, 2, 16))


@golden
def ex_half_a_cabinet_a_group():
    nodes = shapes.ex_nodes([2000], chassis=8, slots=2)
    at = [(i // 32, i % 32 // 8, i % 8) for i in range(64)]
    files = {"source.json": shapes.sls(nodes)}
    return ex_expected(files, nodes, at, (2, 4, 8), specs=["xname:group=half-cabinet"])


@golden
def ex_with_its_switches():
    nodes = shapes.ex_nodes([1000, 1001], chassis=1)
    switches = [f"x{x}c0r{r}b0" for x in (1000, 1001) for r in (1, 3, 5, 7)]
    at = [(i // 16, i % 16 // 4, i % 4) for i in range(32)]
    files = {"source.json": shapes.sls(nodes, switches)}
    return ex_expected(files, nodes, at, (2, 4, 4), links={"local": [12, 12], "global": [4, 64]})


# --- InfiniBand ----------------------------------------------------------------


def fabric(count, each):
    return {f"leaf{i}": [f"n{i * each + j + 1}" for j in range(each)] for i in range(count)}


@golden
def ib_fat_tree():
    leaves = fabric(6, 5)
    cells = {f"n{i + 1}": (i + 1, (i // 5, i % 5)) for i in range(30)}
    files = {"source.ibnetdiscover": shapes.ibnetdiscover(leaves, ["s1", "s2", "s3"], links=2)}
    return coherent(files, cells, "fattree", (6, 5), links={"up1": [18, 36]}, wiring="links of")


@golden
def ib_three_levels():
    leaves = fabric(4, 3)
    extra = [(f"leaf{i}", f"m{i // 2}") for i in range(4)] + [("m0", "top"), ("m1", "top")]
    cells = {f"n{i + 1}": (i + 1, (i // 6, i // 3 % 2, i % 3)) for i in range(12)}
    text = shapes.ibnetdiscover(leaves, ["m0", "m1", "top"], links=0, extra=extra)
    links = {"up1": [4, 4], "up2": [2, 2]}
    return coherent({"source.txt": text}, cells, "fattree", (2, 2, 3), links=links)


@golden
def ib_no_fat_tree():
    leaves = fabric(3, 2)
    extra = [("leaf0", "leaf1"), ("leaf1", "leaf2"), ("leaf2", "leaf0")]
    cells = {f"n{i + 1}": (i + 1, (i // 2, i % 2)) for i in range(6)}
    text = shapes.ibnetdiscover(leaves, [], extra=extra)
    return coherent({"source.txt": text}, cells, "tree", (3, 2), links={"ib": [3, 3]})


def port_line(a, b):
    ends = [f"{kind} {lid:5d} {port:2d} 0x{guid:016x}" for kind, lid, port, guid, _ in (a, b)]
    return f"{ends[0]} 4x EDR - {ends[1]} ( '{a[-1]}' - '{b[-1]}' )\n"


def ib_ports(leaves=3, each=4, spines=2):
    out = []
    for i in range(leaves):
        leaf = lambda port, i=i: ("SW", 100 + i, port, 0xA000 + i, f"leaf{i}")  # noqa: E731  # an end by its port
        for j in range(each):
            host = ("CA", 10 * i + j + 1, 1, 0xC000 + 16 * i + j, f"c{i * each + j + 1} HCA-1")
            out += [port_line(host, leaf(j + 1)), port_line(leaf(j + 1), host)]
        for s in range(spines):
            spine = ("SW", 200 + s, i + 1, 0xB000 + s, f"spine{s}")
            port = leaf(each + 1 + s)
            out += [port_line(port, spine), port_line(spine, port)]
    return out


@golden
def ib_ports_listed():
    cells = {f"c{i + 1}": (i + 1, (i // 4, i % 4)) for i in range(12)}
    files = {"source.out": "".join(ib_ports())}
    return coherent(files, cells, "fattree", (3, 4), links={"up1": [6, 6]})


# --- Slurm ---------------------------------------------------------------------


@golden
def slurm_tree():
    lines = [f"SwitchName=leaf{i} Nodes=tux[{4 * i}-{4 * i + 3}]" for i in range(6)]
    lines += ["SwitchName=mid0 Switches=leaf[0-2]", "switchname=mid1 switches=leaf[3-5]"]
    lines += ["# the root", "SwitchName=root Switches=mid[0-1] LinkSpeed=4"]
    cells = {f"tux{i}": (i, (i // 12, i // 4 % 3, i % 4)) for i in range(24)}
    links = {"up1": [6, 6], "up2": [2, 2]}
    files = {"source.conf": "\n".join(lines) + "\n"}
    return coherent(files, cells, "tree", (2, 3, 4), links=links, leaves=6)


@golden
def slurm_unbalanced_tree():
    text = (
        "SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Nodes=n[5-9]\n"
        "SwitchName=ab Switches=a,b\nSwitchName=root Switches=ab,c\n"
    )
    at = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 1), *((1, 0, i) for i in range(5))]
    cells = {f"n{i}": (i, place) for i, place in enumerate(at)}
    return coherent({"source.conf": text}, cells, "tree", (2, 2, 5), leaves=3)


@golden
def slurm_trees_apart():
    text = "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[4-6]\nSwitchName=c Nodes=n[7-9]\n"
    text += "SwitchName=ab Switches=a,b\n"
    cells = {f"n{i + 1}": (i + 1, (i // 6, i // 3 % 2, i % 3)) for i in range(9)}
    return coherent({"source.conf": text}, cells, "tree", (2, 2, 3), links={"up1": [2, 2]})


@golden
def slurm_blocks():
    lines = [f"BlockName=b{i:02d} Nodes=g[{8 * i + 1}-{8 * i + 8}]" for i in range(4)]
    cells = {f"g{i + 1}": (i + 1, (i // 16, i // 8 % 2, i % 8)) for i in range(32)}
    text = "\n".join([*lines, "BlockSizes=8,16,32"]) + "\n"
    return coherent({"source.conf": text}, cells, "tree", (2, 2, 8), leaves=4)


@golden
def slurm_rings():
    text = "".join(f"RingName=r{i} Nodes=d[{4 * i}-{4 * i + 3}]\n" for i in range(3))
    cells = {f"d{i}": (i, (i // 4, i % 4)) for i in range(12)}
    return coherent({"source.conf": text}, cells, "tree", (3, 4), leaves=3)


@golden
def slurm_printed_tree():
    text = (
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-3]\n"
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[4-7]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-7] Switches=s[0-1]\n"
    )
    cells = {f"n{i}": (i, (i // 4, i % 4)) for i in range(8)}
    return coherent({"source.txt": text}, cells, "tree", (2, 4), links={"up1": [2, 2]})


@golden
def slurm_tree_and_states():
    tree = "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[4-6]\nSwitchName=t Switches=a,b\n"
    states = [("n1", "idle"), ("n2", "mix"), ("n3", "down*"), ("n4", "idle"), ("n5", "idle-")]
    files = {"source.a.conf": tree, "source.b.sinfo": shapes.sinfo(states)}
    cells = {f"n{i + 1}": (i + 1, (i // 3, i % 3)) for i in range(6)}
    return coherent(files, cells, "tree", (2, 3), free=2)


@golden
def slurm_states_alone():
    states = [(f"n{i:03d}", "idle" if i % 2 else "drain") for i in range(40)]
    cells = {name: (i, (0, i)) for i, (name, _) in enumerate(states)}
    return coherent({"source.txt": shapes.sinfo(states)}, cells, "tree", (1, 40), free=20)


# --- incoherent on purpose -----------------------------------------------------

SMALL = xc(2, 1, slots=(0, 1, 2))


def spoilt(row, **changes):
    """Return the small XC with one cell's nid or name changed."""
    cells = list(SMALL)
    nid, name, at = cells[row]
    cells[row] = (changes.get("nid", nid), changes.get("name", name), at)
    return cells


@golden
def bad_hex():
    text = shapes.xtprocadmin(SMALL).replace("0x8 ", "0x9 ", 1)
    return incoherent({"source.txt": text}, "hex", 10)


@golden
def bad_nid_twice():
    text = shapes.xtprocadmin(spoilt(9, nid=SMALL[3][0]))
    return incoherent({"source.txt": text}, "duplicate-nid", 11)


@golden
def bad_cname_twice():
    text = shapes.xtprocadmin(spoilt(9, name=SMALL[3][1]))
    return incoherent({"source.txt": text}, "duplicate-cname", 11)


@golden
def bad_nid_of_another_node():
    text = shapes.xtprocadmin(spoilt(20, nid=4711))
    return incoherent({"source.txt": text}, "nid", 22)


@golden
def bad_cage():
    text = shapes.xtprocadmin(spoilt(5, name="c0-0c3s1n1"))
    return incoherent({"source.txt": text}, "cname", 7)


@golden
def bad_cut_row():
    text = shapes.xtprocadmin(SMALL)[:-40]
    return incoherent({"source.txt": text}, "syntax", len(SMALL) + 1)


@golden
def bad_two_formats():
    text = shapes.xtprocadmin(SMALL[:8]) + shapes.meshcoords(SMALL[8:])
    return incoherent({"source.txt": text}, "syntax", 10)


@golden
def bad_coordinates():
    cells = [(nid, name, at[:3]) for nid, name, at in SMALL]
    cells[6] = (*cells[6][:2], (0, 5, 1))
    return incoherent({"source.txt": shapes.meshcoords(cells)}, "coordinates", 8)


@golden
def bad_half_a_link():
    def damage(lines):
        lines[0] = lines[0].split(" ")[0] + " green -> unused"

    lone = shapes.aries_links({at[:3] for _, _, at in SMALL})
    first = min((b, a) for a, b, kind in lone if a == (0, 0, 0))
    assert first
    return incoherent({"source.rtr": rtr(SMALL, 2, damage)}, "one-ended-link", 49)


@golden
def bad_tile_twice():
    def damage(lines):
        lines.insert(4, lines[3])

    return incoherent({"source.rtr": rtr(SMALL, 2, damage)}, "duplicate-tile", 5)


@golden
def bad_two_machines():
    files = {
        "source.a.txt": shapes.xtprocadmin(xc(4, 2, slots=(0, 1))),
        "source.b.txt": shapes.xtprocadmin(xc(8, 1, slots=(0, 1))),
    }
    line = 2 + len(xc(4, 1, slots=(0, 1)))
    return incoherent(files, "contradiction", line, "source.b.txt")


@golden
def bad_router_not_listed():
    routers = [c for c in SMALL if c[2][:3] != (0, 2, 1)]
    files = {"source.a.txt": shapes.xtprocadmin(SMALL), "source.b.rtr": rtr(routers, 2)}
    return incoherent(files, "contradiction", 0, "source.b.rtr")


@golden
def bad_strangers():
    states = shapes.sinfo([("login1", "idle"), ("login2", "idle")])
    files = {"source.a.txt": shapes.xtprocadmin(SMALL), "source.b.txt": states}
    return incoherent(files, "contradiction", 0, "source.b.txt")


@golden
def bad_loop_of_switches():
    text = "SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\nSwitchName=c Switches=b\n"
    return incoherent({"source.conf": text}, "syntax", 2)


@golden
def bad_undefined_switch():
    text = "SwitchName=leaf1 Nodes=n1\nSwitchName=top Switches=leaf1,leaf2\n"
    return incoherent({"source.conf": text}, "syntax", 2)


@golden
def slurm_node_on_two_leaves():
    """Slurm warns and goes on; the first leaf counts."""
    text = "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-5]\nSwitchName=t Switches=a,b\n"
    cells = {f"n{i}": (i, (0, i - 1) if i <= 3 else (1, i - 4)) for i in range(1, 6)}
    return coherent({"source.conf": text}, cells, "tree", (2, 3))


@golden
def bad_nid_twice_in_sls():
    nodes = shapes.ex_nodes([1000], chassis=1, slots=1)
    nodes[3] = (nodes[3][0], 1001, "Compute")
    text = shapes.sls(nodes)
    line = 1 + text[: text.index(f'"{nodes[3][0]}"')].count("\n")
    return incoherent({"source.json": text}, "duplicate-nid", line, loose_line=True)


@golden
def bad_json():
    text = shapes.sls(shapes.ex_nodes([1000], chassis=1, slots=1))
    half = text[: len(text) // 2]
    return incoherent({"source.json": half}, "syntax", 1 + half.count("\n"), loose_line=True)


@golden
def bad_two_nodes_in_one_place():
    text = "0 c0-0c0s0n0 compute 0 0 0\n1 c0-0c0s0n1 compute 0 0 0\n2 c1-0c0s0n0 compute 0 0 0\n"
    return incoherent({"source.txt": text}, "contradiction", 3)


@golden
def bad_port_with_two_cables():
    lines = ib_ports()
    extra = [x.replace("000c000", "000c777").replace("c1 ", "c77 ") for x in lines[:2]]
    text = "".join([*lines, *extra])
    return incoherent({"source.out": text}, "duplicate-port", len(lines) + 2)


@golden
def bad_gemini_of_another_blade():
    lines = shapes.system_map(shapes.xe_cells(1, 1)).splitlines(keepends=True)
    words = lines[7].split()
    words[3] = "c0-0c2s7g1"
    lines[7] = " ".join(words) + "\n"
    return incoherent({"source.map": "".join(lines)}, "router", 8)


def wording(folder):
    """Return the one line with which the code refuses the machine, to be read before committing."""
    from nidmap.placement.errors import NidmapError
    from nidmap.placement.load import load_machine

    try:
        load_machine(*(str(path) for path in sorted(folder.glob("source*"))))
    except NidmapError as error:
        return str(error).replace(f"{folder}/", "")
    raise AssertionError(f"{folder.name} is refused by nobody")


def main():
    """Write all golden machines anew; only the wording of refusals is taken from the code."""
    for name, make in MACHINES.items():
        files, expected = make()
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file, text in files.items():
            raw = text.encode()
            packed = gzip.compress(raw, mtime=0) if file.endswith(".gz") else raw
            (folder / file).write_bytes(packed)
        if "refused" in expected:
            expected["error"] = wording(folder)
        (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
