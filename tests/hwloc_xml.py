# SPDX-License-Identifier: Apache-2.0
"""hwloc's XML of a node with so many sockets, domains, caches, cores and threads."""


def cpuset(pus):
    """Return a set as hwloc writes it: words of 32 bits, the highest first, zeros left out."""
    bits, words = sum(1 << pu for pu in pus), []
    while bits or not words:
        words.append(bits & 0xFFFFFFFF)
        bits >>= 32
    return ",".join(f"0x{word:08x}" if word else "" for word in reversed(words)) or "0x0"


def tag(kind, pus, inside="", **more):
    attributes = "".join(f' {key}="{value}"' for key, value in more.items())
    sets = "" if pus is None else f' cpuset="{cpuset(pus)}"'
    return f'<object type="{kind}"{sets}{attributes}>{inside}</object>'


def device(name, gp, kind="0302 [10de:20b0]", subtype="1"):
    os = tag("OSDev", None, name=name, osdev_type=subtype, gp_index=gp)
    return tag("Bridge", None, tag("PCIDev", None, os, pci_type=kind, gp_index=gp + 100))


def node_xml(sockets, domains, caches, cores, threads, version="2.0", devices=None):
    """Return a node with so many of each in each; first threads of all cores are numbered first."""
    total = sockets * domains * caches * cores
    every = [[core + t * total for t in range(threads)] for core in range(total)]

    def pus(low, high):
        return [pu for core in every[low:high] for pu in core]

    text = ""
    for socket in range(sockets):
        inside = ""
        for domain in range(socket * domains, (socket + 1) * domains):
            below = ""
            for cache in range(domain * caches, (domain + 1) * caches):
                low = cache * cores
                rows = (
                    tag("Core", every[c], "".join(tag("PU", [p], os_index=p) for p in every[c]))
                    for c in range(low, low + cores)
                )
                kind = {"type": "L3Cache"} if version[0] > "1" else {"type": "Cache", "depth": "3"}
                name = kind.pop("type")
                below += tag(name, pus(low, low + cores), "".join(rows), **kind)
            span = domain * caches * cores, (domain + 1) * caches * cores
            memory = tag("NUMANode", pus(*span))
            hung = "".join((devices or {}).get(domain, []))
            inside += tag("Group", pus(*span), memory + below + hung)
        whole = socket * domains * caches * cores, (socket + 1) * domains * caches * cores
        inside = inside if version[0] > "1" else inside.replace("Package", "Socket")
        text += tag("Package" if version[0] > "1" else "Socket", pus(*whole), inside)
    return f'<topology version="{version}">{tag("Machine", pus(0, total), text)}</topology>'
