# SPDX-License-Identifier: Apache-2.0
"""Machine-shaped dumps, made by the published rules with plain loops: no code under test here."""

import json
from collections import Counter
from itertools import combinations, product

XT_HEADER = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n"
MESH_HEADER = "  NID   NODENAME      TYPE   CORES   X  Y  Z\n"


# --- Cray XC -----------------------------------------------------------------


def xc_cells(columns, rows, absent=(), keep=None):
    """Return (nid, cname, (group, chassis, slot, node)) of an XC; `absent` holds (col, row)."""
    cells = []
    for r, c, h, s, n in product(range(rows), range(columns), range(3), range(16), range(4)):
        if (c, r) not in absent:
            nid = 192 * (r * columns + c) + 64 * h + 4 * s + n
            place = (r * (columns // 2) + c // 2, h + 3 * (c % 2), s, n)
            cells.append((nid, f"c{c}-{r}c{h}s{s}n{n}", place))
    return [cell for cell in cells if keep is None or keep(cell)]


def xtprocadmin(cells, service=(), states=None, mode="batch"):
    """Return an XC's xtprocadmin of (nid, cname, …) cells."""
    states = states or {}
    out = XT_HEADER
    for nid, name, *_ in cells:
        kind, state = "service" if nid in service else "compute", states.get(nid, "up")
        out += f"{nid:6d} {hex(nid):>8s} {name:>11s} {kind:>8s} {state:>9s} {mode:>11s}\n"
    return out


def meshcoords(cells, cores=64):
    """Return meshcoords of cells whose third item begins with x, y, z."""
    return MESH_HEADER + "".join(
        f"{nid:5d} {name:>12s} {'compute':>10s} {cores:5d} {at[0]:3d} {at[1]:2d} {at[2]:2d}\n"
        for nid, name, at in cells
    )


def xtdb2proc(cells, service=()):
    """Return xtdb2proc records of XC cells."""
    out = ["#\n# This file lists tables currently in the system database,\n#\n"]
    for nid, name, at in cells:
        col, rest = name[1:].split("-")
        row, rest = rest.split("c")
        cage, rest = rest.split("s")
        slot, node = rest.split("n")
        kind = "service" if nid in service else "compute"
        out.append(
            f"cpu={node},slot={slot},cage={cage},cabinet=null,cab_position={col},cab_row={row},"
            f"x_coord={at[0]},y_coord={at[1]},z_coord={at[2]},process_slots=4,"
            f"process_slots_free=4,processor_status='up',processor_type='{kind}',"
            f"alloc_mode='batch',processor_id={nid},od_allocator_id=0,"
            "next_red_black_switch=null,processor_spec=null\n"
        )
    return "".join(out)


def aries_links(routers, k=2):
    """Return Counter of (a, b, colour), a < b, for routers (group, chassis, slot): same-chassis.

    k blades of a chassis serve a pair of groups: 2 on Edison, 4 on Theta.
    """
    out = Counter()
    for a, b in combinations(sorted(routers), 2):
        if a[0] == b[0] and a[1] == b[1]:
            out[a, b, "green"] += 1
        elif a[0] == b[0] and a[2] == b[2]:
            out[a, b, "black"] += 3
    groups = sorted({g for g, _, _ in routers})
    for (g, h), c, j in product(combinations(groups, 2), range(6), range(k)):
        a = (g, c, (k * rank(groups, g, h) + j) % 16)
        b = (h, c, (k * rank(groups, h, g) + j) % 16)
        if a in routers and b in routers:
            out[a, b, "blue"] += 2
    return out


def rank(groups, g, h):
    """Return the rank of h among the groups other than g."""
    return [x for x in groups if x != g].index(h)


def rtr_aries(routers, links, columns, damage=None):
    """Return rtr --interconnect of Aries routers with these links; every router has 48 tiles."""
    tiles = {r: [] for r in routers}
    for (a, b, colour), count in sorted(links.items()):
        for _ in range(count):
            at_a, at_b = len(tiles[a]), len(tiles[b])
            tiles[a].append((colour, b, at_b))
            tiles[b].append((colour, a, at_a))
    lines = []
    for router in sorted(routers):
        used = tiles[router]
        assert len(used) <= 40
        for tile in range(48):
            text = f"{aries_tile(router, tile, columns)} "
            if tile < len(used):
                colour, other, far = used[tile]
                text += f"{colour} -> {aries_tile(other, far, columns)}"
            elif tile >= 40:
                text += "ptile -> processor"
            else:
                text += "blue -> unused"
            lines.append(text)
    if damage:
        damage(lines)
    return "\n".join(lines) + "\n"


def aries_name(router, columns):
    """Return the cname of an Aries (group, chassis, slot)."""
    g, c, s = router
    row, pair = divmod(g, columns // 2)
    return f"c{2 * pair + c // 3}-{row}c{c % 3}s{s}a0"


def aries_tile(router, tile, columns):
    g, c, s = router
    return f"{aries_name(router, columns)}l{tile // 8}{tile % 8}({g}:{c}:{s})"


# --- Cray XE -----------------------------------------------------------------


def xe_cells(columns, rows, keep=None):
    """Return (nid, cname, (x, y, z)) of an XE or XK."""
    places = product(range(columns), range(rows), range(3), range(8), range(4))
    cells = [xe_cell(columns, rows, *place) for place in places]
    return sorted(cell for cell in cells if keep is None or keep(cell))


def xe_cell(columns, rows, c, r, h, s, n):
    x = 0 if c == 0 else (c + 1) // 2 if c % 2 else columns - c // 2
    k = r // 2 if r % 2 == 0 else rows - 1 - r // 2
    y = 2 * k + n // 2
    z = ((s, 15 - s, 16 + s) if k % 2 == 0 else (16 + s, 15 - s, s))[h]
    b = (columns - x) % columns
    q = 24 * y + (z if y % 2 == 0 else 23 - z)
    if b % 2:
        q = 48 * rows - 1 - q
    return 96 * rows * b + 2 * q + n % 2, (f"c{c}-{r}c{h}s{s}n{n}"), (x, y, z)


def coordinate_file(cells, kind="compute"):
    return "".join(f"{nid} {name} {kind} {x} {y} {z}\n" for nid, name, (x, y, z) in cells)


def system_map(cells):
    lines = ["nid hex node gemini x y z\n", "-" * 30 + "\n"]
    for nid, name, (x, y, z) in cells:
        blade, node = name.split("n")
        lines.append(f"{nid} {hex(nid)} {name} {blade}g{int(node) // 2} {x} {y} {z}\n")
    return "".join(lines)


def torus_links(extents):
    """Return Counter of (a, b, axis) by brute force: two links where the extent is 2."""
    out = Counter()
    for at in positions(extents):
        for axis, extent in enumerate(extents):
            if extent > 1:
                to = list(at)
                to[axis] = (at[axis] + 1) % extent
                a, b = sorted((at, tuple(to)))
                out[a, b, "xyzw"[axis]] += 1
    return out


def positions(extents):
    return list(product(*(range(extent) for extent in extents)))


def rtr_gemini(cells, extents, tiles=2):
    """Return rtr --interconnect of a Gemini torus, `tiles` links a direction."""
    name = {at: cname.split("n")[0] + f"g{int(cname.split('n')[1]) // 2}" for _, cname, at in cells}
    used = Counter()
    ends = []
    for at in sorted(name):
        for axis, extent in enumerate(extents):
            to = list(at)
            to[axis] = (at[axis] + 1) % extent
            to = tuple(to)
            if extent == 1 or to not in name:
                continue
            for _ in range(tiles):
                near, far = used[at], used[to] + (at == to)
                used[at] += 1
                used[to] += 1
                letter = "XYZ"[axis]
                ends.append((at, near, f"{letter}+", to, far))
                ends.append((to, far, f"{letter}-", at, near))
    lines = [
        f"{gemini_tile(name, a, ta)} {kind} -> {gemini_tile(name, b, tb)} "
        f"LinkType: {medium(name, a, b, kind)}"
        for a, ta, kind, b, tb in sorted(ends)
    ]
    return "\n".join(lines) + "\n"


def gemini_tile(name, at, tile):
    return f"{name[at]}l{tile // 8}{tile % 8}[({at[0]},{at[1]},{at[2]})]"


def medium(name, a, b, kind):
    blade_a, blade_b = name[a].split("g")[0], name[b].split("g")[0]
    if blade_a == blade_b:
        return "mezzanine"
    cage_a, cage_b = blade_a.split("s")[0], blade_b.split("s")[0]
    return "backplane" if kind[0] == "Z" and cage_a == cage_b else "cable11x"


# --- others ------------------------------------------------------------------


def sls(nodes, switches=(), start=1000):
    """Return SLS's JSON of (xname, nid or None, role) nodes and switch xnames."""
    hardware = {}
    for xname, nid, role in nodes:
        extra = {"Role": role, "Aliases": [f"nid{nid:06d}" if nid else f"uan-{xname}"]}
        if nid:
            extra["NID"] = nid
        hardware[xname] = {
            "Parent": xname.split("n")[0],
            "Xname": xname,
            "Type": "comptype_node",
            "Class": "Mountain",
            "TypeString": "Node",
            "ExtraProperties": extra,
        }
    for xname in switches:
        hardware[xname] = {
            "Parent": xname.split("r")[0],
            "Xname": xname,
            "Type": "comptype_rtr_bmc",
            "Class": "Mountain",
            "TypeString": "RouterBMC",
        }
    return json.dumps({"Hardware": hardware, "Networks": {}}, indent=1) + "\n"


def ex_nodes(cabinets, chassis=2, slots=4, boards=2, nodes=2, first=1000):
    """Return (xname, nid, role) of an EX whose NIDs follow the xnames."""
    out = []
    for x in cabinets:
        for c in range(chassis):
            for s in range(slots):
                for b in range(boards):
                    for n in range(nodes):
                        out.append((f"x{x}c{c}s{s}b{b}n{n}", first + len(out), "Compute"))
    return out


def ibnetdiscover(leaves, spines, links=1, extra=()):
    """Return ibnetdiscover of leaves {name: [hosts]} each joined to all spines.

    `extra` holds (switch, switch) cables more.
    """
    guid = {n: f"{i + 16:016x}" for i, n in enumerate([*leaves, *spines])}
    hosts = [h for row in leaves.values() for h in row]
    guid |= {h: f"{i + 4096:016x}" for i, h in enumerate(hosts)}
    ports = {name: [] for name in guid}

    def join(a, b):
        ports[a].append((b, len(ports[b]) + 1))
        ports[b].append((a, len(ports[a])))

    for leaf, row in leaves.items():
        for host in row:
            join(leaf, host)
    for leaf in leaves:
        for spine in spines:
            for _ in range(links):
                join(leaf, spine)
    for a, b in extra:
        join(a, b)
    switches = {*leaves, *spines}
    out = []
    for name in (*leaves, *spines, *hosts):
        switch = name in switches
        letter = "S" if switch else "H"
        word = "Switch" if switch else "Ca"
        label = name if switch else f"{name} HCA-1"
        out.append(f"\n{'switch' if switch else 'ca'}guid=0x{guid[name]}({guid[name]})\n")
        out.append(f'{word}\t{len(ports[name])} "{letter}-{guid[name]}"\t\t# "{label}"')
        out.append(" base port 0 lid 4 lmc 0\n" if switch else "\n")
        for i, (peer, port) in enumerate(ports[name], 1):
            kind = "S" if peer in switches else "H"
            label = peer if peer in switches else f"{peer} HCA-1"
            own = "" if switch else f"({guid[name]}) "
            out.append(f'[{i}]{own}\t"{kind}-{guid[peer]}"[{port}]\t\t# "{label}" lid 7 4xEDR\n')
    return "#\n# Topology file\n#\n" + "".join(out)


def sinfo(rows):
    """Return sinfo -N -o "%N %t" of (name, state) rows."""
    return "NODELIST STATE\n" + "".join(f"{name} {state}\n" for name, state in rows)
