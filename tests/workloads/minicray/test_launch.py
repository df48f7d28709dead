# SPDX-License-Identifier: Apache-2.0
"""How a program becomes ranks: by the mpiexec that is there, whichever library's it is."""

import pytest

from nidmap.workloads.minicray.commands import launch_command, launch_environment

ABOUT = {"names": ["nid00000", "nid00001"], "nodes": 2, "name": "one", "slurm": False}


@pytest.mark.parametrize(
    ("says", "agent"),
    [
        ("mpiexec (OpenRTE) 4.1.4", ["--mca", "plm_rsh_agent"]),
        ("mpirun (Open MPI) 5.0.11", ["--prtemca", "plm_ssh_agent"]),
        ("HYDRA build details:\n    Version:    4.0.2", ["-launcher", "ssh"]),
    ],
)
def test_the_first_mpiexec_on_the_path_gets_its_own_options(tmp_path, monkeypatch, says, agent):
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(f"#!/bin/sh\ncat <<'E'\n{says}\nE\n")
    mpiexec.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    words = launch_command(ABOUT, ["./app"], ranks=4)
    assert words[:3] == [str(mpiexec), *agent]
    assert words[-3:] == ["-n", "4", "./app"]


def programs(folder, **said):
    """Make programs that print a text, or hold some bytes."""
    for name, text in said.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(
            text if isinstance(text, bytes) else f"#!/bin/sh\necho '{text}'\n".encode()
        )
        path.chmod(0o755)


OPEN_MPI, MPICH = "mpirun (Open MPI) 4.1.4", "HYDRA build details: Version: 5.0.2"


def test_which_mpi_programs_have_inside_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    programs(tmp_path, mpiexec="mpirun (Open MPI) 5.0.11")
    assert launch_environment(ABOUT, ["./app"])["NIDMAP_MINICRAY_MPI"] == "openmpi"
    programs(tmp_path, mpiexec="somebody else 1")
    assert "NIDMAP_MINICRAY_MPI" not in launch_environment(ABOUT, ["./app"])


def test_the_programs_own_libraries_say_whose_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    programs(tmp_path, mpiexec=MPICH, mpirun_openmpi=OPEN_MPI, app=b"\x7fELF libmpi.so.40\0")
    assert launch_command(ABOUT, ["app"], ranks=2)[0] == str(tmp_path / "mpirun.openmpi")
    assert launch_environment(ABOUT, ["salloc", "app"])["NIDMAP_MINICRAY_MPI"] == "openmpi"
    slurm = {**ABOUT, "slurm": True}
    assert launch_command(slurm, ["app"], ranks=2)[:2] == ["srun", "--mpi=pmix"]
    assert launch_command(slurm, ["script"], ranks=2)[:2] == ["srun", "--mpi=pmi2"]


def test_an_old_mpich_is_helped_to_end(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("LD_PRELOAD", "/mine.so")
    for said, helped in ((MPICH, "/mine.so:/run/minicray/finalize.so"), (OPEN_MPI, None)):
        programs(tmp_path, mpiexec=said)
        about = {**ABOUT, "finalize": True}
        assert launch_environment(about, ["app"]).get("LD_PRELOAD") == helped
