"""All that the daemon needs, as one JSON document: batch lines, files, environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from workloads.minicray import net as lay
from workloads.minicray.daemon import HOME
from workloads.minicray.slurm import slurm_files, slurm_start

if TYPE_CHECKING:
    from workloads.minicray.net import Net
    from workloads.minicray.slurm import Slurm

__all__ = ["blueprint"]

#: Knobs of a namespace's network, below /proc/sys/net: routers forward by the flow,
#: where there are several ways; nodes are patient, their windows never shrink, and they send
#: no tail twice to probe for a loss (early_retrans), as nothing is ever lost.
_ROUTER = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/fib_multipath_hash_policy": "1",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}
_NODE = {
    "ipv4/tcp_congestion_control": "reno",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/tcp_early_retrans": "0",
    "ipv4/tcp_wmem": "4096 4194304 4194304",
    "ipv4/tcp_rmem": "4096 131072 131072",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}

#: Runs a program on a node: in its network, under its name, with temporary files of its own
#: (PMIx has one directory a job step there, and takes one that is there for another's).
_ON = """#!/bin/sh
node=$1; shift
exec nsenter --net=/run/netns/"$node" unshare --uts --mount sh -c '
hostname "$0" && mount --bind {home}/tmp."$0" {home}/tmp && exec "$@"' "$node" "$@"
"""

#: What a launcher takes for ssh.
_SSH = """#!/bin/sh
while :; do case "$1" in -x|-q|-n) shift;; -*) shift 2;; *) break;; esac; done
node=$1; shift
exec {home}/on "$node" sh -c "$*"
"""

#: Where Debian keeps the PMIx library that slurmd opens by a name of its development package.
_PMIX = "/usr/lib/*/pmix2/lib/libpmix.so.2"


def blueprint(net: Net, name: str, specs: tuple[str, ...], slurm: Slurm | None) -> dict[str, Any]:
    """Return what the daemon is to build.

    Parameters
    ----------
    net : Net
    name : str
        Of this mini-Cray.
    specs : tuple of str
        What the machine was named by.
    slurm : Slurm or None
        The Slurm that is to run on the nodes.
    """
    files = {
        "hosts": (lay.hosts(net), 0o644),
        "nodes": ("".join(f"{node}\n" for node in net.names), 0o644),
        "on": (_ON.format(home=HOME), 0o755),
        "ssh": (_SSH.format(home=HOME), 0o755),
        **(slurm_files(net, slurm) if slurm else {}),
    }
    start = slurm_start(net, slurm) if slurm else None
    specs = tuple(_absolute(spec) for spec in specs)
    own = [f"tmp.{node}" for node in net.names]
    return {
        "login": lay.LOGIN,
        "creation": [*lay.login_setup(), *lay.creation(net)],
        "spaces": [*_nodes(net), *_routers(net)],
        "files": files,
        "folders": ["tmp", "lib", *own, *(start["folders"] if start else ())],
        "symlinks": _libraries() if slurm else [],
        "environment": _environment(specs, name, slurm is not None),
        "usual": _USUAL,
        "slurm": start,
        "about": {
            "name": name,
            "machine": list(specs),
            "nodes": len(net.names),
            "routers": net.routers,
            "links": len(net.channels) // 2,
            "scale": net.scale,
            "mtu": lay.MTU,
            "routing": "ecmp" if net.ecmp else "single",
            "slurm": slurm is not None,
            "topology": slurm.topology if slurm else "",
            "names": list(net.names),
            "addresses": [lay.node_address(k) for k in range(len(net.names))],
            "notes": list(net.notes),
            "rates": _rates(net),
        },
    }


def _absolute(spec: str) -> str:
    """Return a spec as it reads from any directory."""
    return os.path.abspath(spec) if os.path.exists(spec) else spec


def _nodes(net: Net) -> list[dict[str, Any]]:
    limits = list(lay.node_limits(net))
    return [
        {
            "name": name,
            "sysctl": _NODE,
            "ip": list(lay.node_setup(net, k)),
            "tc": limits,
            "counts": {"hsn0": f"{name} injection"},
        }
        for k, name in enumerate(net.names)
    ]


def _routers(net: Net) -> list[dict[str, Any]]:
    channel = [str(text) for text in net.channels.names()]
    return [
        {
            "name": lay.router_space(r),
            "sysctl": _ROUTER,
            "ip": list(lay.router_setup(net, r)),
            "tc": list(lay.router_limits(net, r)),
            "counts": {
                **{f"p{k}": f"{net.names[k]} ejection" for k in lay.attached(net, r)},
                **{f"c{c}": channel[c] for c in lay.leaving(net, r)},
            },
        }
        for r in range(net.routers)
    ]


def _rates(net: Net) -> dict[str, float]:
    """Return Mbit/s of each class, the slowest channel of it."""
    found = {"injection": net.node_rate}
    for kind, rate in zip(net.channels.kind.tolist(), net.rates.tolist(), strict=True):
        word = net.channels.kinds[kind]
        found[word] = min(rate, found.get(word, rate))
    return {name: round(rate * 8 / 1e6, 3) for name, rate in found.items()}


def _libraries() -> list[tuple[str, str, str]]:
    """Return links that a library is missing whose development package is not installed."""
    from glob import glob

    folders = [os.path.dirname(path) for path in glob(_PMIX)]
    plain = "libpmix.so"
    return [(f, plain, f"{plain}.2") for f in folders if not os.path.exists(f"{f}/{plain}")]


def _environment(specs: tuple[str, ...], name: str, slurm: bool) -> dict[str, str]:
    """Return what programs inside are told: Slurm, the machine, the device that MPI uses."""
    here = {"SLURM_CONF": str(HOME / "slurm.conf")} if slurm else {}
    return {
        **(here or _launchers()),
        "NIDMAP_MACHINE": " ".join(specs),
        "NIDMAP_MINICRAY": name,
        "TMPDIR": str(HOME / "tmp"),
        "SLURM_PMIX_TMPDIR": str(HOME / "tmp"),
        # MPICH (ch4) and Open MPI: TCP on the fabric's device, nothing else between nodes.
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "hsn0",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,sm,tcp",
        "OMPI_MCA_btl_tcp_if_include": "hsn0",
        "PRTE_MCA_oob_tcp_if_include": lay.MANAGEMENT,
        "OMPI_MCA_oob_tcp_if_include": lay.MANAGEMENT,
    }


def _launchers() -> dict[str, str]:
    """Return what has mpiexec start its ranks on the nodes, where no Slurm does it."""
    return {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(HOME / "ssh"),
        "HYDRA_HOST_FILE": str(HOME / "nodes"),
        "PRTE_MCA_plm_ssh_agent": str(HOME / "ssh"),
        "PRTE_MCA_prte_default_hostfile": str(HOME / "nodes"),
        "OMPI_MCA_plm_rsh_agent": str(HOME / "ssh"),
        "OMPI_MCA_orte_default_hostfile": str(HOME / "nodes"),
    }


#: What a user may set otherwise: many ranks share few cores here.
_USUAL = {
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "USER": os.environ.get("USER", "user"),
}
