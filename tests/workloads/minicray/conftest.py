# SPDX-License-Identifier: Apache-2.0
"""Mini-Crays for tests: names of their own, gone when the test ends, whatever it does."""

import functools
import itertools
import os
import shutil
import subprocess
import sys

import pytest

from tests.waiting import wait_until

DRAGONFLY = "minicray:dragonfly"

#: What a namespace has to allow; the same tools and kinds as a mini-Cray needs.
_PROBE = """
ip link add name v0 type veth peer name v1 && ip link add name b0 type bridge &&
tc qdisc add dev v0 root tbf rate 1mbit burst 10000 limit 1m && mount -t tmpfs t /run
"""

_counter = itertools.count()


@functools.cache
def why_no_minicray():
    """Return why no mini-Cray can stand here, '' where one can."""
    from nidmap.workloads.minicray.client import may_administer

    missing = [tool for tool in ("unshare", "ip", "tc", "nsenter") if not _found(tool)]
    if missing:
        return f"{', '.join(missing)} not installed"
    user = [] if may_administer() else ["--map-root-user"]
    command = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--uts",
        *user,
        "sh",
        "-ec",
        _PROBE,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    said = (done.stderr.strip().splitlines() or ["?"])[-1]
    return f"namespaces with links cannot be made here: {said}" if done.returncode else ""


def _found(tool):
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@pytest.fixture(autouse=True)
def _needs_namespaces(request):
    if request.node.get_closest_marker("minicray") and why_no_minicray():
        pytest.skip(why_no_minicray())


def nidmap(*words, check=True, timeout=600, **more):
    """Run the command line; return the finished process."""
    command = [sys.executable, "-m", "nidmap", *words]
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **more)
    if check and done.returncode:
        pytest.fail(f"{words}: code {done.returncode}: {done.stderr}")
    return done


def new_name():
    """Return a name that no other test uses."""
    return f"test-{os.getpid()}-{next(_counter)}"


@pytest.fixture(scope="module")
def minicray():
    """Return a function that builds a mini-Cray and returns its name; all go at the end."""
    if why_no_minicray():
        pytest.skip(why_no_minicray())
    names = []

    def build(*words):
        name = new_name()
        nidmap("minicray", "up", "--name", name, *words)
        names.append(name)
        return name

    yield build
    for name in names:
        nidmap("minicray", "down", "--name", name, check=False)


def host():
    """Return what of this host a mini-Cray must not change."""
    listed = ["ip -o link", "ip route show table all", "tc qdisc", "ip netns", "hostname"]
    said = [subprocess.run(c.split(), capture_output=True, text=True).stdout for c in listed]
    with open("/etc/hosts") as stream:
        said.append(stream.read())
    with open("/proc/self/mounts") as stream:
        said.append(stream.read())
    return [*said, sorted(os.listdir("/run"))]


def leftovers(name):
    """Return processes that belong to a mini-Cray, once they have had time to go."""
    wait_until(lambda: not list(_of(name)), f"the end of {name}")
    return []


def _of(name):
    words = (f"NIDMAP_MINICRAY={name}", f"--name {name}")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                env = stream.read().decode(errors="replace").split("\0")
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                line = stream.read().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if words[0] in env or (words[1] in line and "minicray" in line):
            yield pid, line
