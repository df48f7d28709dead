# SPDX-License-Identifier: Apache-2.0
"""A rank that asks its launcher for PMI_process_mapping, by PMI-1 (Hydra) or PMI-2 (Slurm).

Rank 0 prints the value; no MPI is needed.
"""

import os


class Wire:
    """What a rank and its launcher talk over."""

    def __init__(self):
        self.file = os.fdopen(int(os.environ["PMI_FD"]), "r+b", buffering=0)

    def line(self):
        """Return the next line."""
        read = b""
        while not read.endswith(b"\n"):
            read += self.file.read(1)
        return read.decode()

    def by_pmi1(self, command):
        """Send a command of PMI-1 and return its answer."""
        self.file.write(f"cmd={command}\n".encode())
        return self.line()

    def by_pmi2(self, command):
        """Send a command of PMI-2 and return its answer, the length of each in front."""
        text = f"cmd={command};"
        self.file.write(f"{len(text):6d}{text}".encode())
        left, read = int(self.file.read(6)), b""
        while len(read) < left:
            read += self.file.read(left - len(read))
        return read.decode()


def main():
    """Ask for the mapping; rank 0 prints it."""
    wire = Wire()
    if "SLURM_PROCID" in os.environ:
        rank = int(os.environ["SLURM_PROCID"])
        wire.file.write(b"cmd=init pmi_version=2 pmi_subversion=0\n")
        wire.line()
        job = os.environ["PMI_JOBID"]
        wire.by_pmi2(f"fullinit;pmijobid={job};pmirank={rank};threaded=FALSE")
        said = wire.by_pmi2("info-getjobattr;key=PMI_process_mapping")
        answer = said.split("value=")[1].split(";")[0]
        wire.by_pmi2("finalize")
    else:
        rank = int(os.environ["PMI_RANK"])
        wire.by_pmi1("init pmi_version=1 pmi_subversion=1")
        space = wire.by_pmi1("get_my_kvsname").split("kvsname=")[1].strip()
        said = wire.by_pmi1(f"get kvsname={space} key=PMI_process_mapping")
        answer = said.split("value=")[1].strip()
        wire.by_pmi1("finalize")
    if rank == 0:
        print("mapping", answer, flush=True)


if __name__ == "__main__":
    main()
