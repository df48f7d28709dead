# SPDX-License-Identifier: Apache-2.0
"""Flows in SimGrid: all started at once, and the time when the last one ends.

Run by `simgrid_check` under an interpreter that has SimGrid's Python module
(Debian: python3-simgrid), so nothing but the standard library is used here.
It reads one JSON document from standard input and writes one:

``{"kind": "torus", "extents": [x, y, z], "gbs": 4.68, "flows": [[s, t, bytes], …]}``
    SimGrid's own torus, its hosts numbered x fastest.
``{"kind": "fattree", "down": […], "up": […], "parallel": […], "gbs": 12.5, "flows": …}``
    SimGrid's own fat tree, its hosts numbered leaf by leaf.
``{"kind": "routes", "gbs": [per link], "flows": [[s, t, bytes, [links]], …]}``
    The routes are given, so that only the sharing is SimGrid's.

The network model is plain max-min sharing: no correction factors, no TCP
window, no cross traffic, no latency. ``network/optim:Full``: the default,
Lazy, under-counts flows that start at the same time.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time

CONFIGURATION = (
    "network/model:CM02",
    "network/optim:Full",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
)


def platform(job):
    """Return the platform of a job in SimGrid's XML."""
    if job["kind"] == "torus":
        topology, sizes = "TORUS", ",".join(map(str, job["extents"]))
        count = math.prod(job["extents"])
    else:
        topology, count = "FAT_TREE", math.prod(job["down"])
        rows = (job["down"], job["up"], job["parallel"])
        sizes = ";".join([str(len(job["down"])), *(",".join(map(str, r)) for r in rows)])
    return f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="all" prefix="h" suffix="" radical="0-{count - 1}" speed="1Gf"
           bw="{job["gbs"]}GBps" lat="0s"
           topology="{topology}" topo_parameters="{sizes}" sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def make_platform(job, simgrid, engine):
    """Load SimGrid's own torus or fat tree; return its hosts by number."""
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(platform(job))
        file.flush()
        engine.load_platform(file.name)
    return {int(host.name[1:]): host for host in engine.get_all_hosts()}


def build_routes(job, simgrid, engine):
    """Create the job's links and routes; return the hosts by number."""
    zone = simgrid.NetZone.create_full_zone("all")
    links = [
        simgrid.LinkInRoute(zone.create_link(f"l{i}", gbs * 1e9).set_latency(0).seal())
        for i, gbs in enumerate(job["gbs"])
    ]
    numbers = sorted({end for s, t, *_ in job["flows"] for end in (s, t)})
    hosts = {n: zone.create_host(f"h{n}", 1e9).seal() for n in numbers}
    for s, t, _, path in job["flows"]:
        ends = hosts[s].netpoint, hosts[t].netpoint
        zone.add_route(*ends, None, None, [links[i] for i in path], False)
    zone.seal()
    return hosts


def main():
    """Run the job on standard input."""
    job = json.load(sys.stdin)
    import simgrid

    began = time.perf_counter()
    engine = simgrid.Engine(
        ["flows", *(f"--cfg={c}" for c in CONFIGURATION), "--log=root.thres:error"]
    )
    hosts = (build_routes if job["kind"] == "routes" else make_platform)(job, simgrid, engine)
    ends = []

    def send():
        begun = [
            simgrid.Comm.sendto_async(hosts[s], hosts[t], int(b)) for s, t, b, *_ in job["flows"]
        ]
        simgrid.Comm.wait_all(begun)
        ends.extend(c.finish_time for c in begun)

    simgrid.Actor.create("send", next(iter(hosts.values())), send)
    engine.run()
    print(json.dumps({"seconds": engine.clock, "ran": time.perf_counter() - began, "ends": ends}))


if __name__ == "__main__":
    main()
