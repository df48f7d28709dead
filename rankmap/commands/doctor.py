# SPDX-License-Identifier: Apache-2.0
"""``nidmap doctor``: what is installed and detected here, and what nidmap would use."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution, version

import click
import msgspec

from nidmap.placement import __version__
from nidmap.placement.commands import EXTRAS, NAMES
from nidmap.placement.commands.common import json_option, machine_option
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.load import build, open_sources
from nidmap.placement.machine_option import machine_specs, named_specs
from nidmap.placement.slurm.command import NoSlurm, ask_slurm, slurm_settings
from nidmap.placement.support.child import Deadline
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.tables import align_columns
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.launch.allocation import job_here, job_id
from nidmap.rankmap.launch.queries import mpi_library
from nidmap.rankmap.preload import ABI, find_compilers, shipped
from nidmap.rankmap.refine.cache import cache_folder, kernels_compiled, numba_installed, user_cache

#: Seconds that Slurm may take for each question.
PATIENCE = 5.0

#: Schedulers besides Slurm, each by one of its programs.
SCHEDULERS = {"PBS": "pbsnodes", "Flux": "flux", "LSF": "bsub", "Grid Engine": "qhost"}

#: Launchers whose MPI only they themselves can tell.
MPIEXECS = ("mpiexec", "mpirun")

#: Launchers of one library or scheduler.
LAUNCHERS = ("srun", "aprun")


class Diagnosis(msgspec.Struct, frozen=True):
    """The result of one check: ``ok``, ``missing``, or ``failed`` (found, but broken)."""

    topic: str
    name: str
    state: str
    text: str


class DoctorReport(msgspec.Struct, frozen=True):
    """The results of all checks; ``--json`` prints it."""

    schema: str
    version: str
    findings: list[Diagnosis]


@click.command()
@machine_option
@json_option
def doctor(specs: tuple[str, ...], as_json: bool) -> None:
    """Show what is installed and detected here, and what nidmap would use.

    Each line is in one of three states: ok; missing: not found, and needed only by what uses it;
    failed: found, but it does not work (exit code 1). Nothing is changed, and nothing leaves this
    machine: paste the output into a bug report.

    \b
    nidmap doctor
    nidmap doctor -m my.xtprocadmin --json
    """
    findings = list(examine(specs, os.environ))
    if as_json:
        report = DoctorReport("nidmap-doctor-1", __version__, findings)
        write_output(to_json(msgspec.to_builtins(report)))
    else:
        write_output(as_text(findings))
    failed = [finding.name for finding in findings if finding.state == "failed"]
    if failed:
        say(f"nidmap: {', '.join(failed)}: found, but not working")
        click.get_current_context().exit(1)
    say("nidmap: everything found works; what is missing matters only to the features that use it")


def examine(specs: tuple[str, ...], env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield all diagnoses, topic by topic."""
    yield from _examine_install()
    yield from _examine_extras()
    yield _attempt("scheduler", "Slurm", _describe_slurm, shutil.which("scontrol"))
    for name, program in SCHEDULERS.items():
        yield _attempt("scheduler", name, lambda path: path, shutil.which(program))
    for program in MPIEXECS:
        yield _attempt(
            "launcher", program, lambda path: _describe_mpi(path, env), shutil.which(program)
        )
    for program in LAUNCHERS:
        yield _attempt("launcher", program, lambda path: path, shutil.which(program))
    yield from _examine_recorder(env)
    yield _attempt("machine", "-m" if specs else "default", lambda _: describe_machine(specs), "-")
    yield _attempt("job", job_id(env) or "this shell", lambda _: _describe_job(env), "-")
    yield from _examine_caches()
    for name in sorted(name for name in env if name.startswith("NIDMAP_")):
        secret = "TOKEN" in name  # the output goes into bug reports
        yield Diagnosis("environment", name, "ok", "is set" if secret else env[name])


def _attempt(topic: str, name: str, describe: Callable[[str], str], where: str | None) -> Diagnosis:
    """Run a check; return what it found, that it is missing, or why it does not work."""
    if where is None:
        return Diagnosis(topic, name, "missing", "not found")
    try:
        return Diagnosis(topic, name, "ok", describe(where))
    except (UsageError, NoSlurm) as error:  # nothing here, as on a laptop
        return Diagnosis(topic, name, "missing", str(error))
    except NidmapError as error:
        return Diagnosis(topic, name, "failed", str(error))


def _examine_install() -> Iterator[Diagnosis]:
    """Yield version, folder, Python and system."""
    home = os.path.dirname(sys.modules["nidmap"].__file__ or "")
    try:
        url = json.loads(distribution("nidmap").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        url = {}
    editable = ", editable" if url.get("dir_info", {}).get("editable") else ""
    yield Diagnosis("nidmap", "version", "ok", f"{__version__} in {home}{editable}")
    yield Diagnosis("nidmap", "Python", "ok", f"{platform.python_version()} ({sys.executable})")
    libc = " ".join(filter(None, platform.libc_ver()))
    yield Diagnosis("nidmap", "system", "ok", f"{platform.system()} {platform.machine()} {libc}")
    for package in ("numpy", "click", "msgspec"):
        yield Diagnosis("nidmap", package, "ok", version(package))


def _examine_extras() -> Iterator[Diagnosis]:
    """Yield each package of an extra, and how to install the missing ones."""
    for module, extra in EXTRAS.items():
        package = NAMES.get(module, module)
        try:
            yield Diagnosis("extra", f"{extra}: {package}", "ok", version(package))
        except PackageNotFoundError:
            hint = f"pip install 'nidmap[{extra}]'"
            yield Diagnosis("extra", f"{extra}: {package}", "missing", hint)


def _describe_slurm(path: str) -> str:
    """Return Slurm's version, cluster and topology plugin."""
    release = ask_slurm(["scontrol", "--version"], deadline=Deadline(PATIENCE)).output.strip()
    settings = slurm_settings(Deadline(PATIENCE))
    cluster, plugin = settings.get("ClusterName", ""), settings.get("TopologyPlugin", "")
    return f"{release}, cluster {cluster or 'unnamed'}, {plugin or 'no topology plugin'} ({path})"


def _describe_mpi(path: str, env: Mapping[str, str]) -> str:
    """Return the MPI library of a launcher."""
    library = mpi_library(path, env)
    return f"{library.name} {library.version} ({path})"


def _examine_recorder(env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield the recorder libraries shipped with nidmap, and the compilers to build others."""
    ready = [abi for abi in ABI if shipped([abi])]
    state = "ok" if ready else "missing"
    text = (
        f"for {', '.join(ready)}"
        if ready
        else "not in this installation: compiled by mpicc at the first use"
    )
    yield Diagnosis("recorder", "prebuilt", state, text)
    try:
        for compiler in find_compilers([], env):
            text = f"{compiler.abi} {compiler.version} ({compiler.path})"
            yield Diagnosis("recorder", "compiler", "ok", text)
    except NidmapError as error:
        yield Diagnosis("recorder", "compiler", "missing", str(error))


def describe_machine(specs: tuple[str, ...]) -> str:
    """Return the machine that a command with these ``-m`` options would use, and its origin."""
    named = named_specs(specs)
    sources = open_sources(*machine_specs(specs))
    machine = build(sources)
    if specs:
        origin = "named by -m"
    elif named:
        origin = "by $NIDMAP_MACHINE" if os.environ.get("NIDMAP_MACHINE") else "by config.toml"
    else:
        origin = sources.why
    return f"{machine.name} ({counted(len(machine), 'node')}, {machine.topology.kind}) {origin}"


def _describe_job(env: Mapping[str, str]) -> str:
    """Return the job in which this shell runs."""
    job = job_here(env)
    if job is None:
        return "not inside a job"
    note = f" ({job.note})" if job.note else ""
    return f"{counted(len(job.nodes), 'node')}: {job.nodes.fold()}{note}"


def _examine_caches() -> Iterator[Diagnosis]:
    """Yield the folders that hold compiled kernels and recorders."""
    if numba_installed():
        folder = cache_folder()
        compiled = "compiled" if kernels_compiled() else "compiled at the first use"
        yield Diagnosis("cache", "kernels", "ok" if folder else "missing", f"{folder}, {compiled}")
    else:
        yield Diagnosis(
            "cache",
            "kernels",
            "missing",
            "needs numba; without it graphs are mapped with less search",
        )
    yield Diagnosis("cache", "user", "ok", user_cache(""))


def as_text(findings: list[Diagnosis]) -> str:
    """Return diagnoses as a table; within a topic, missing items come last."""
    topics = list(dict.fromkeys(finding.topic for finding in findings))
    ordered = sorted(findings, key=lambda f: (topics.index(f.topic), f.state == "missing"))
    rows = [(finding.topic, finding.name, finding.state, finding.text) for finding in ordered]
    return align_columns([("topic", "name", "state", "what"), *rows], left=range(4))
