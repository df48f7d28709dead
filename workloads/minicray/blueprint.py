# SPDX-License-Identifier: Apache-2.0
"""From a machine's specification to a mini-Cray: all that its daemon needs, in one document."""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path
from typing import Any

from nidmap.placement.errors import UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.ui import say
from nidmap.workloads.minicray import client
from nidmap.workloads.minicray import net as lay
from nidmap.workloads.minicray.client import Standing
from nidmap.workloads.minicray.daemon import HOME
from nidmap.workloads.minicray.net import Net
from nidmap.workloads.minicray.slurm import Slurm, find_slurm, slurm_files, slurm_programs

#: Knobs of a namespace's network, below /proc/sys/net: nodes are patient, their windows never
#: shrink and hold any message, as acknowledgements wait behind data (a fabric's credits do not),
#: and they send no tail twice to probe for a loss (early_retrans), as nothing is ever lost.
_NO_IPV6 = dict.fromkeys(("ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"), "1")
_ROUTER = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    **_NO_IPV6,
}
_NODE = {
    "ipv4/tcp_congestion_control": "reno",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/tcp_early_retrans": "0",
    "ipv4/tcp_wmem": "4096 4194304 4194304",
    "ipv4/tcp_rmem": "4096 4194304 4194304",
    **_NO_IPV6,
}

#: Where Debian keeps the PMIx library that slurmd opens by a name of its development package.
_PMIX = "/usr/lib/*/pmix2/lib/libpmix.so.2"


def build_minicray(
    specs: tuple[str, ...],
    name: str,
    *,
    scale: float | None = None,
    topology: str = "tree",
) -> Standing:
    """Build a mini-Cray, and return its description.

    `specs`: the machine, as ``-m`` takes it. `scale`: how many times slower its links are; None
    means such that links bind. `topology`: Slurm's topology plugin; ``off`` leaves Slurm out even
    where it is installed.
    """
    if "-" in specs:
        raise UsageError(
            "a mini-Cray's commands read the machine again, but standard input can be read only"
            " once",
            "save the dump to a file",
        )
    net = lay.design_network(load_machine(*specs), scale)
    slurm, missing = (None, "") if topology == "off" else find_slurm(topology)
    plan = blueprint(net, name, specs, slurm)
    standing = client.start_minicray(plan, map_all=slurm is not None)
    rates = ", ".join(f"{kind} {rate:g}" for kind, rate in plan["about"]["rates"].items())
    say(f"mini-Cray {name}: {len(net.names)} nodes, {net.routers} routers; Mbit/s: {rates}")
    say(f"Slurm: {'running' if slurm else f'left out: {missing}' if missing else 'left out'}")
    for note in net.notes:
        say(f"note: {note}")
    return standing


def blueprint(net: Net, name: str, specs: tuple[str, ...], slurm: Slurm | None) -> dict[str, Any]:
    """Return the plan from which the daemon builds.

    `name`: of this mini-Cray. `specs`: what the machine was named by. `slurm`: the Slurm that is
    to run on the nodes.
    """
    files = {
        "hosts": (lay.hosts_file(net), 0o644),
        "nodes": ("".join(f"{node}\n" for node in net.names), 0o644),
        "finalize.c": (_text_of("finalize.c"), 0o644),
        **{name: (_text_of(f"{name}.sh"), 0o755) for name in ("on", "sys", "ssh")},
        **(slurm_files(net, slurm) if slurm else {}),
    }
    start = slurm_programs(net, slurm) if slurm else None
    # Paths as they read from any directory.
    specs = tuple(os.path.abspath(spec) if os.path.exists(spec) else spec for spec in specs)
    tmp_folders = [f"tmp.{node}" for node in net.names]
    return {
        "login": lay.LOGIN,
        "creation": [*lay.login_setup(), *lay.creation_lines(net)],
        "spaces": _plan_spaces(net),
        "files": files,
        "folders": ["tmp", "lib", "sysfs", *tmp_folders, *(start["folders"] if start else ())],
        "symlinks": _library_links() if slurm else [],
        "environment": {
            **({"SLURM_CONF": f"{HOME}/slurm.conf"} if slurm else _LAUNCHERS),
            "NIDMAP_MACHINE": " ".join(
                lay.stated_words(
                    specs, routing=lay.ROUTING, process="inf", slowed=f"{net.scale:.6g}"
                )
            ),
            "NIDMAP_MINICRAY": name,
            **_INSIDE,
        },
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
            "routing": lay.ROUTING,
            "slurm": slurm is not None,
            "topology": slurm.topology if slurm else "",
            "names": list(net.names),
            "addresses": [lay.node_address(k) for k in range(len(net.names))],
            "notes": list(net.notes),
            "rates": _class_rates(net),
        },
    }


def _text_of(name: str) -> str:
    """Return the text of a file next to this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _plan_spaces(net: Net) -> list[dict[str, Any]]:
    """Return the setup of each namespace: nodes, then routers."""
    channel = net.channels.names().tolist()
    spaces: list[dict[str, Any]] = [
        {
            "name": name,
            "sysctl": _NODE,
            "ip": lay.node_setup(net, k),
            "tc": [lay.limit_line("hsn0", net.node_rate)],
            "counts": {"hsn0": f"{name} injection"},
        }
        for k, name in enumerate(net.names)
    ]
    for r in range(net.routers):
        rates = {f"p{k}": net.node_rate for k in net.attached(r)}
        rates |= {f"c{c}": float(net.rates[c]) for c in net.leaving(r)}
        counts = {f"p{k}": f"{net.names[k]} ejection" for k in net.attached(r)}
        counts |= {f"c{c}": channel[c] for c in net.leaving(r)}
        spaces.append({
            "name": lay.router_space(r),
            "sysctl": _ROUTER,
            "ip": list(lay.router_setup(net, r)),
            "tc": [lay.limit_line(device, rate) for device, rate in rates.items()],
            "counts": counts,
        })  # fmt: skip
    return spaces


def _class_rates(net: Net) -> dict[str, float]:
    """Return the Mbit/s of each class's slowest channel."""
    rates = {"injection": net.node_rate}
    for kind, rate in zip(net.channels.kind.tolist(), net.rates.tolist(), strict=True):
        word = net.channels.kinds[kind]
        rates[word] = min(rate, rates.get(word, rate))
    return {name: round(rate * 8 / 1e6, 3) for name, rate in rates.items()}


def _library_links() -> list[tuple[str, str, str]]:
    """Return links for libraries whose development package is not installed."""
    folders = [os.path.dirname(path) for path in glob(_PMIX)]
    plain = "libpmix.so"
    return [(f, plain, f"{plain}.2") for f in folders if not os.path.exists(f"{f}/{plain}")]


#: Environment of programs inside.
_INSIDE = {
    **dict.fromkeys(("TMPDIR", "SLURM_PMIX_TMPDIR"), str(HOME / "tmp")),
    "PRTE_MCA_oob_tcp_if_include": lay.MANAGEMENT,
    "OMPI_MCA_oob_tcp_if_include": lay.MANAGEMENT,
}

#: What has mpiexec (Hydra's, PRRTE's, Open MPI 4's) start its ranks on the nodes, where no Slurm
#: does it.
_AGENTS = ("HYDRA_LAUNCHER_EXEC", "PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent")
_HOSTS = ("HYDRA_HOST_FILE", "PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile")
_LAUNCHERS = {
    "HYDRA_LAUNCHER": "ssh",
    **dict.fromkeys(_AGENTS, f"{HOME}/ssh"),
    **dict.fromkeys(_HOSTS, f"{HOME}/nodes"),
}

#: What a user may set otherwise: the device that MPI uses, on the fabric, and nothing else between
#: nodes; and many ranks share few cores here. MPICH takes libfabric where it has it, as Cray's
#: does, else UCX. Open
#: MPI's components are named by what is left out: shared memory is vader in 4 and sm in 5, and
#: monitoring goes with ob1. UCX announces no large message before it sends it: the answer would
#: queue behind data, as no fabric's hardware has it. Where fences go by a tree, Slurm's PMIx
#: plugin (22.05) lets ranks pass before all have come, and Open MPI 4 crashes at a message that it
#: gets while it starts.
_USUAL = {
    **dict.fromkeys(("FI_TCP_IFACE", "UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include"), "hsn0"),
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
    "UCX_TLS": "tcp,sm,self",
    "UCX_RNDV_THRESH": "inf",
    "SLURM_PMIX_FENCE": "ring",
    "OMPI_MCA_pml": "^cm,ucx,yalla",
    "OMPI_MCA_btl": "^ofi,openib,smcuda,uct,ugni,usnic",
    **dict.fromkeys(("MPIR_CVAR_ENABLE_HEAVY_YIELD", "OMPI_MCA_mpi_yield_when_idle"), "1"),
    **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "USER": os.environ.get("USER", "user"),
}
