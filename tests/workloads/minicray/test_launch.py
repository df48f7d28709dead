"""How a program becomes ranks: by the mpiexec that is there, whichever library's it is."""

import pytest

from workloads.minicray.launch import launch_command, launch_environment

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


def test_which_mpi_programs_have_inside_is_said(tmp_path, monkeypatch):
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\n")
    mpiexec.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert launch_environment(ABOUT)["NIDMAP_MINICRAY_MPI"] == "openmpi"
    mpiexec.write_text("#!/bin/sh\necho 'somebody else 1'\n")
    assert "NIDMAP_MINICRAY_MPI" not in launch_environment(ABOUT)
