"""A rank that asks its launcher for PMI_process_mapping, by PMI-1 (Hydra) or PMI-2 (Slurm).

Rank 0 prints the value; no MPI is needed.
"""

import os

wire = os.fdopen(int(os.environ["PMI_FD"]), "r+b", buffering=0)


def line():
    """Return the next line."""
    read = b""
    while not read.endswith(b"\n"):
        read += wire.read(1)
    return read.decode()


def by_pmi1(command):
    """Send a command of PMI-1 and return its answer."""
    wire.write(f"cmd={command}\n".encode())
    return line()


def by_pmi2(command):
    """Send a command of PMI-2 and return its answer, the length of each in front."""
    text = f"cmd={command};"
    wire.write(f"{len(text):6d}{text}".encode())
    left, read = int(wire.read(6)), b""
    while len(read) < left:
        read += wire.read(left - len(read))
    return read.decode()


if "SLURM_PROCID" in os.environ:
    rank = int(os.environ["SLURM_PROCID"])
    wire.write(b"cmd=init pmi_version=2 pmi_subversion=0\n")
    line()
    by_pmi2(f"fullinit;pmijobid={os.environ['PMI_JOBID']};pmirank={rank};threaded=FALSE")
    answer = by_pmi2("info-getjobattr;key=PMI_process_mapping").split("value=")[1].split(";")[0]
    by_pmi2("finalize")
else:
    rank = int(os.environ["PMI_RANK"])
    by_pmi1("init pmi_version=1 pmi_subversion=1")
    space = by_pmi1("get_my_kvsname").split("kvsname=")[1].strip()
    answer = by_pmi1(f"get kvsname={space} key=PMI_process_mapping").split("value=")[1].strip()
    by_pmi1("finalize")
if rank == 0:
    print("mapping", answer, flush=True)
