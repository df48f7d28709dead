# SPDX-License-Identifier: Apache-2.0
"""Dumps of Slurm's topologies and of InfiniBand, made by their published forms with plain loops."""

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Tree:
    """A valid forest: switches in file order, each with nodes or children."""

    switches: tuple  # (name, nodes, children)

    def level(self, name):
        """Return the height over the leaves, by plain recursion."""
        children = {n: kids for n, _, kids in self.switches}[name]
        return 1 + max(self.level(c) for c in children) if children else 0

    def below(self, name):
        """Return all nodes below a switch."""
        nodes, children = next((n, c) for s, n, c in self.switches if s == name)
        return [*nodes, *(n for c in children for n in self.below(c))]

    @property
    def nodes(self):
        """All nodes, leaf by leaf in file order."""
        return [n for _, nodes, _ in self.switches for n in nodes]

    @property
    def roots(self):
        """Names of switches without a parent."""
        kids = {c for _, _, children in self.switches for c in children}
        return [n for n, _, _ in self.switches if n not in kids]


@st.composite
def trees(draw, max_leaves=8):
    """Draw a forest: leaves with one to five nodes, joined at random, in any file order."""
    leaves = draw(st.integers(1, max_leaves))
    width = draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(1, 5), min_size=leaves, max_size=leaves))
    order = draw(st.permutations(range(sum(counts))))
    names = [f"nid{n:0{width}d}" for n in order]
    rows, loose, start = [], [], 0
    for i, count in enumerate(counts):
        rows.append((f"leaf{i}", tuple(names[start : start + count]), ()))
        loose.append(f"leaf{i}")
        start += count
    while len(loose) > 1 and draw(st.integers(0, 4)):
        many = draw(st.integers(1, len(loose)))
        taken, loose = loose[:many], loose[many:]
        name = f"sw{len(rows)}"
        rows.append((name, (), tuple(taken)))
        loose.append(name)
    return Tree(tuple(draw(st.permutations(rows))))


def topology_conf(tree):
    """Write a tree as topology.conf in its plainest form."""
    return "".join(
        f"SwitchName={name}"
        + (f" Nodes={','.join(nodes)}" if nodes else "")
        + (f" Switches={','.join(children)}" if children else "")
        + "\n"
        for name, nodes, children in tree.switches
    )


def topology_yaml(tree):
    """Write a tree as topology.yaml."""
    text = "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
    for name, nodes, children in tree.switches:
        text += f"      - switch: {name}\n"
        text += f"        nodes: {','.join(nodes)}\n" if nodes else ""
        text += f"        children: {','.join(children)}\n" if children else ""
    return text


def scontrol_topology(tree):
    """Write a tree as scontrol show topology prints it."""
    return "".join(
        f"SwitchName={name} Level={tree.level(name)} LinkSpeed=1 Nodes={','.join(tree.below(name))}"
        + (f" Switches={','.join(children)}" if children else "")
        + "\n"
        for name, _, children in tree.switches
    )


@dataclass(frozen=True)
class Fabric:
    """Hosts with adapters, switches, and cables ((kind, name), port, (kind, name), port)."""

    hosts: tuple  # name of the host of each adapter
    switches: tuple
    cables: tuple

    def guid(self, end):
        """Return a GUID for ("H", adapter) or ("S", switch)."""
        kind, number = end
        return (0xAA00 if kind == "H" else 0xBB0000) + number

    def description(self, end):
        """Return what ibnetdiscover prints for it."""
        kind, number = end
        if kind == "S":
            return self.switches[number]
        before = self.hosts[:number].count(self.hosts[number])
        return f"{self.hosts[number]} mlx5_{before}"


@st.composite
def fabrics(draw):
    """Draw leaves with hosts (some with several adapters), spines, and cables between them."""
    leaves, spines = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    switches = [f"leaf {i}" for i in range(leaves)] + [f"spine-{i}" for i in range(spines)]
    used = [0] * len(switches)
    hosts, cables = [], []

    def port(switch):
        used[switch] += 1
        return used[switch]

    for host in range(draw(st.integers(1, 8))):
        for _ in range(draw(st.integers(1, 3))):
            leaf = draw(st.integers(0, leaves - 1))
            cables.append((("H", len(hosts)), 1, ("S", leaf), port(leaf)))
            hosts.append(f"node{host:03d}")
    for leaf in range(leaves):
        for spine in range(leaves, leaves + spines):
            parallel = draw(st.integers(0, 2))
            ends = [(port(leaf), port(spine)) for _ in range(parallel)]
            cables += [(("S", leaf), near, ("S", spine), far) for near, far in ends]
    return Fabric(tuple(hosts), tuple(switches), tuple(cables))


def ports_text(fabric, rate="EDR"):
    """Print a fabric as ibnetdiscover --ports, a dark port for a switch without cables."""

    def end(thing, port):
        kind = "CA" if thing[0] == "H" else "SW"
        return f"{kind} {thing[1] + 1:5d} {port:2d} 0x{fabric.guid(thing):016x}"

    rows = []
    for a, pa, b, pb in fabric.cables:
        for (x, px), (y, py) in (((a, pa), (b, pb)), ((b, pb), (a, pa))):
            names = f"( '{fabric.description(x)}' - '{fabric.description(y)}' )"
            rows.append(f"{end(x, px)} 4x {rate} - {end(y, py)} {names}\n")
    cabled = {thing for a, _, b, _ in fabric.cables for thing in (a, b)}
    for number, name in enumerate(fabric.switches):
        if ("S", number) not in cabled:
            rows.append(f"{end(('S', number), 7)} 4x ???{'':36}'{name}'\n")
    return "".join(rows)


def full_text(fabric, rate="EDR"):
    """Print a fabric as ibnetdiscover does: a paragraph a switch, then one an adapter."""
    sides = [(a, pa, b, pb) for a, pa, b, pb in fabric.cables]
    sides += [(b, pb, a, pa) for a, pa, b, pb in fabric.cables]
    out = "#\n# Topology file: generated on some day\n#\n# Initiated from node 1 port 1\n"
    things = [("S", i) for i in range(len(fabric.switches))]
    things += [("H", i) for i in range(len(fabric.hosts))]
    for thing in things:
        guid, name = fabric.guid(thing), fabric.description(thing)
        if thing[0] == "S":
            out += f"\nvendid=0x2c9\ndevid=0xd2f0\nswitchguid=0x{guid:x}({guid:x})\n"
            out += f'Switch\t36 "S-{guid:016x}"\t\t# "{name}" base port 0 lid {thing[1]} lmc 0\n'
        else:
            out += f"\nvendid=0x2c9\ndevid=0x1017\ncaguid=0x{guid:x}\n"
            out += f'Ca\t1 "H-{guid:016x}"\t\t# "{name}"\n'
        for a, pa, b, pb in sides:
            if a == thing:
                out += _port_line(fabric, a, pa, b, pb, rate)
    return out


def _port_line(fabric, a, pa, b, pb, rate):
    far, name = fabric.guid(b), fabric.description(b)
    if a[0] == "H":
        return (
            f'[{pa}]({fabric.guid(a):x}) \t"{b[0]}-{far:016x}"[{pb}]\t\t'
            f'# lid 9 lmc 0 "{name}" lid 8 4x{rate}\n'
        )
    shown = f"({far:x}) " if b[0] == "H" else ""
    return f'[{pa}]\t"{b[0]}-{far:016x}"[{pb}]{shown}\t\t# "{name}" lid 8 4x{rate}\n'
