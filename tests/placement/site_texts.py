# SPDX-License-Identifier: Apache-2.0
"""Small site files of every fabric, for the tests that break them."""

HEAD = """\
name = "mine"
title = "My machine"
system = { value = "a system", mark = "published", source = "its builder" }

[software]
scheduler = { value = "slurm", mark = "published", source = "the site" }
launcher = { value = "srun", mark = "published", source = "the site" }
mpi = { value = "an MPI", mark = "assumed", source = "a guess" }

[latency]
mpi_us = { value = 1.5, mark = "assumed", source = "a guess" }
hop_ns = { value = 100, mark = "assumed", source = "a guess" }
"""

ARIES = (
    HEAD
    + """
[network]
fabric = "aries"
groups = { value = 2, mark = "measured", source = "a dump" }
wiring = { value = "consecutive", mark = "assumed", source = "a guess" }
links = { value = 24, mark = "assumed", source = "a guess" }

[cabinets]
columns = { value = 4, mark = "measured", source = "a dump" }
rows = { value = 1, mark = "measured", source = "a dump" }
service_blades = { value = ["c0-0c0s0"], mark = "measured", source = "a dump" }

[nodes]
compute = { value = 764, mark = "measured", source = "a dump" }

[[partition]]
name = "one"
cores = { value = 32, mark = "published", source = "the site" }
memory_gb = { value = 128, mark = "published", source = "the site" }

[bandwidth]
blue = { value = 4.6875, mark = "published", source = "the vendor" }

[stated]
peak = { value = 1.5, unit = "PFlop/s", mark = "published", source = "the site" }
"""
)

GEMINI = (
    HEAD
    + """
[network]
fabric = "gemini"
extents = { value = [2, 4, 24], mark = "measured", source = "a dump" }

[cabinets]
columns = { value = 2, mark = "measured", source = "a dump" }
rows = { value = 2, mark = "measured", source = "a dump" }

[nodes]
compute = { value = 384, mark = "measured", source = "a dump" }

[bandwidth]
x = { value = 9.375, mark = "published", source = "the vendor" }
"""
)

SLINGSHOT = (
    HEAD
    + """
[network]
fabric = "slingshot"
groups = { value = 5, mark = "published", source = "the site" }
wiring = { value = "consecutive", mark = "assumed", source = "a guess" }
links = { value = [[4, 2], [2, 8]], mark = "assumed", source = "a guess" }

[nodes]
compute = { value = 88, mark = "published", source = "the site" }
name = { value = "nid{nid:06}", mark = "published", source = "the site" }

[[partition]]
name = "cpu"
groups = { value = 2, mark = "published", source = "the site" }
group_nodes = { value = [16, 24], mark = "published", source = "the site" }
group_switches = { value = 2, mark = "published", source = "the site" }
first_nid = { value = 1000, mark = "published", source = "the site" }

[[partition]]
name = "gpu"
groups = { value = 3, mark = "published", source = "the site" }
group_nodes = { value = 16, mark = "published", source = "the site" }
group_switches = { value = 8, mark = "published", source = "the site" }
chassis_nodes = { value = 8, mark = "published", source = "the site" }
chassis_switches = { value = 4, mark = "published", source = "the site" }
first_nid = { value = 5000, mark = "published", source = "the site" }
nics = { value = 2, mark = "published", source = "the site" }
gpus = { value = 4, mark = "published", source = "the site" }

[bandwidth]
injection = { value = 25, mark = "published", source = "the vendor" }
"""
)

FATTREE = (
    HEAD
    + """
[network]
fabric = "infiniband"
leaves = { value = 2, mark = "published", source = "the site" }
leaf_nodes = { value = 18, mark = "published", source = "the site" }
spines = { value = 2, mark = "assumed", source = "a guess" }
uplinks = { value = 4, mark = "assumed", source = "a guess" }

[[leaf]]
name = "leaf1"
nodes = { value = "n[1-18]", mark = "published", source = "the site" }
service = { value = "n1", mark = "published", source = "the site" }

[[leaf]]
name = "leaf2"
nodes = { value = "n[19-30]", mark = "published", source = "the site" }

[nodes]
compute = { value = 29, mark = "published", source = "the site" }

[bandwidth]
up = { value = 3.5, mark = "published", source = "the site" }
"""
)

ALL = {"aries": ARIES, "gemini": GEMINI, "slingshot": SLINGSHOT, "infiniband": FATTREE}
