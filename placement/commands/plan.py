"""``nidmap plan``: choose the nodes that a job should sit on."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_from, machine_option, say, write_output
from placement.errors import PlanError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Plan
    from placement.slurm import SlurmNodes

#: Formats of `--format`, listed here so that `--help` loads no emitter.
FORMATS = (
    "nodelist", "lines", "nids", "cnames", "hostfile", "sbatch", "aprun", "pbs", "json",
    "exclude", "switches",
)  # fmt: skip

#: Formats that pin the job to the very nodes.
PINNING = ("nodelist", "lines", "sbatch", "pbs")


@dataclass(frozen=True)
class Wish:
    """The options of the command, as given."""

    specs: tuple[str, ...]
    count: int
    strategy: str
    source: str | None
    exclude: str | None
    include: str | None
    partition: str | None
    constraint: str | None
    reservation: str | None
    ppn: int | None
    per_blade: int
    contiguous: bool
    slack: int
    seed: int
    check: bool
    form: str
    output: str | None
    pattern: str | None
    grid: str | None
    size: float | None
    routing: str | None
    algorithm: str | None
    latency: float | None
    background: str | None
    background_load: float | None
    deadline: float | None
    order_out: str | None
    order_format: str | None

    @property
    def job(self) -> dict[str, Any]:
        """What is said of the job's traffic, by the option's name."""
        said = {
            "pattern": self.pattern,
            "grid": self.grid,
            "bytes": self.size,
            "routing": self.routing,
            "algorithm": self.algorithm,
            "latency": self.latency,
            "background": self.background,
            "background_load": self.background_load,
            "deadline": self.deadline,
        }
        return {key: value for key, value in said.items() if value is not None}

    @property
    def slurm(self) -> dict[str, str | None]:
        """The options that narrow what Slurm offers."""
        return {
            "partition": self.partition,
            "constraint": self.constraint,
            "reservation": self.reservation,
        }


@click.command()
@machine_option
@click.option("-N", "--count", "count", type=int, required=True, help="Nodes wanted.")
@click.option("--strategy", help="Planner; default: auto with a pattern, else compact.")
@click.option("--from", "source", metavar="idle|-|LIST|FILE", help="Choose only among these.")
@click.option("--exclude", metavar="LIST|FILE", help="Never these nodes, blades, cabinets.")
@click.option("--include", metavar="LIST|FILE", help="These nodes in any case.")
@click.option("--partition", "-p", help="Only what Slurm has in this partition (--from idle).")
@click.option("--constraint", "-C", help="Only nodes with these Slurm features (--from idle).")
@click.option("--reservation", help="Only nodes of this Slurm reservation (--from idle).")
@click.option("--ppn", type=click.IntRange(1), help="Ranks a node, for headers and host files.")
@click.option("--per-blade", type=click.IntRange(1, 4), default=4, show_default=True)
@click.option("--contiguous", is_flag=True, help="With slurm-…: as sbatch --contiguous.")
@click.option("--slack", type=click.IntRange(0), default=0, help="Nodes more to plan on.")
@click.option("--seed", type=int, default=0, show_default=True, help="For random and auto.")
@click.option("--pattern", metavar="P", help="What the job sends: alltoall, fft:64x64 …")
@click.option("--grid", metavar="GRID", help="Short for --pattern stencil:GRID.")
@click.option("--bytes", "size", type=float, metavar="B", help="Payload of one message.")
@click.option("--routing", metavar="R", help="minimal, adaptive … as it applies.")
@click.option("--algorithm", metavar="A", help="An all-to-all's: at-once, pairwise, ring, bruck.")
@click.option("--latency", type=float, metavar="US", help="Of a short message; 0: bytes alone.")
@click.option("--background", metavar="FILE|slurm", help="Other jobs that share the links.")
@click.option("--background-load", type=float, metavar="GBS", help="What their nodes send.")
@click.option(
    "--deadline", type=float, metavar="S", help="Seconds that auto may search; default 8 of CPU."
)
@click.option("--order-out", metavar="FILE", help="Write auto's order of the ranks there.")
@click.option("--order-format", metavar="F", help="Its format, as of nidmap order.")
@click.option("--check", is_flag=True, help="Ask Slurm when the job would start, pinned and not.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: nodelist.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", metavar="FILE", help="Write there, whole or not at all.")
def plan(form: str | None, as_json: bool, strategy: str | None, **options: Any) -> None:
    """Choose the nodes that a job should sit on.

    The list goes to stdout in the planner's order; stderr says in words what
    was chosen. Strategies: auto, blades, blades-linked, compact, hilbert,
    hilbert-groups, level-spread, morton, morton-groups, random, spread, and
    Slurm's own choice as the baseline: slurm-none, slurm-tree,
    slurm-dragonfly.

    auto takes the nodes, and the order of the ranks, that --pattern and the
    options after it are predicted fastest with, and says what that wins
    against Slurm's own choice. Its order of the ranks goes to --order-out,
    in the format that the file's name says (MPICH_RANK_ORDER, .slots, .hosts
    …) or --order-format.

    \b
    nidmap plan -m shaheen2 -N 512 --ppn 32 --pattern fft:128x128 --order-out MPICH_RANK_ORDER
    nidmap plan -m shaheen2 -N 216 --strategy blades --per-blade 1
    nidmap plan -m daint.xtprocadmin -N 512 --strategy hilbert --format sbatch --ppn 36
    nidmap plan -m shaheen2 -N 64 --from idle -p workq --check
    squeue -h -j 4711 -o %N | nidmap plan -m shaheen2 -N 60 --from -
    """
    chosen = "json" if as_json else form or "nodelist"
    wish = Wish(form=chosen, strategy=strategy or _usual(options), **options)
    _consistent(wish)
    machine = machine_from(wish.specs)
    slurm = _ask_slurm(wish)
    result = _choose(machine, wish, slurm)
    checked = _check(machine, result, wish) if wish.check else None
    ranks = _ranks(result, wish)
    if ranks is not None:
        write_output(ranks, wish.order_out)
    write_output(_text(machine, result, wish, checked), wish.output)
    _talk(machine, result, wish, checked)


def _usual(options: dict[str, Any]) -> str:
    """Return the strategy where none is named."""
    from placement.plan import usual_strategy

    return usual_strategy({"pattern": options["pattern"] or options["grid"]})


def _consistent(wish: Wish) -> None:
    """Refuse options that contradict each other before anything slow is done."""
    _predicting(wish)
    if wish.count < 1:
        raise UsageError(f"-N {wish.count}: at least 1 node is needed")
    if any(wish.slurm.values()) and wish.source not in (None, "idle"):
        raise UsageError(
            "--partition, --constraint and --reservation ask Slurm", "use them with --from idle"
        )
    if wish.contiguous and not wish.strategy.startswith("slurm-"):
        raise UsageError("--contiguous goes with the strategies slurm-none, slurm-tree, …")


def _predicting(wish: Wish) -> None:
    """Refuse what only goes with a strategy that predicts, and what does not go with one."""
    from placement.planners import PREDICTING

    if wish.strategy in PREDICTING:
        if wish.slack:
            raise UsageError(
                f"--slack and --strategy {wish.strategy} exclude each other",
                "plan on more nodes with compact, and let auto choose inside the job",
            )
        if wish.order_format is not None and wish.order_out is None:
            raise UsageError("--order-format goes with --order-out")
        if wish.order_out == "-" and wish.output in (None, "-"):
            raise UsageError("the nodes and the order cannot both go to standard output")
        return
    lost = [*wish.job, *(["order-out"] if wish.order_out is not None else [])]
    if wish.order_format is not None:
        lost.append("order-format")
    if lost:
        raise UsageError(
            f"--{lost[0].replace('_', '-')} goes with a strategy that predicts",
            f"use --strategy {', '.join(PREDICTING)}",
        )


def _ranks(result: Plan, wish: Wish) -> str | None:
    """Return the order of the ranks as text, where it is asked for."""
    if wish.order_out is None:
        return None
    assert result.written is not None
    return result.written(wish.order_format or "", wish.order_out)


def _ask_slurm(wish: Wish) -> SlurmNodes | None:
    """Ask Slurm what is idle, where the options want its answer."""
    if wish.source != "idle" and not any(wish.slurm.values()):
        return None
    from placement.slurm import free_nodes

    found = free_nodes(**wish.slurm)
    for note in found.notes:
        say(f"nidmap: {note}")
    return found


def _choose(machine: Machine, wish: Wish, slurm: SlurmNodes | None) -> Plan:
    from placement.plan import plan as make_plan

    with _job(wish) as job:
        return make_plan(
            machine,
            wish.count + wish.slack,
            strategy=wish.strategy,
            candidates=_candidates(machine, wish, slurm),
            include=listed_rows(machine, wish.include, "--include"),
            exclude=listed_rows(machine, wish.exclude, "--exclude"),
            per_blade=wish.per_blade,
            contiguous=wish.contiguous,
            weights=_weights(machine, slurm),
            seed=wish.seed,
            **job,
        )


@contextmanager
def _job(wish: Wish) -> Iterator[dict[str, Any]]:
    """Yield what a strategy that predicts is told, with a progress bar while it searches."""
    from placement.planners import PREDICTING

    if wish.strategy not in PREDICTING:
        yield {}
        return
    from placement.commands.progress import bar

    with bar() as told:
        yield {**wish.job, "ppn": wish.ppn, "progress": told}


def listed_rows(machine: Machine, text: str | None, option: str) -> NDArray[np.int64]:
    """Return the rows that a list option names.

    Parameters
    ----------
    machine : Machine
    text : str or None
        A list, a file of one, or ``-``; None names nothing.
    option : str
        The option's name, for errors.

    Returns
    -------
    int64 (k,)
        In the order given.

    Raises
    ------
    ParseError
        A word that names no node of the machine.
    """
    import numpy as np

    if text is None:
        return np.empty(0, dtype=np.int64)
    from placement.lists.pasted import read_list
    from placement.lookup import rows_of

    content, source = read_list(text, option)
    return rows_of(machine, content, source=source, repeats=True)


def _candidates(machine: Machine, wish: Wish, slurm: SlurmNodes | None) -> NDArray[np.bool_] | None:
    """Return the mask of rows that may be chosen; None for the machine's own free ones."""
    import numpy as np

    if slurm is not None:
        return idle_rows(machine, slurm)
    if wish.source is None:
        return None
    named = np.zeros(len(machine), dtype=bool)
    named[listed_rows(machine, wish.source, "--from")] = True
    busy = named & ~machine.free
    if busy.any():
        first = machine.names[np.flatnonzero(busy)[0]]
        say(f"nidmap: {int(busy.sum())} nodes of --from are not free and left out, first {first}")
    return named & machine.free


def idle_rows(machine: Machine, slurm: SlurmNodes) -> NDArray[np.bool_]:
    """Map Slurm's idle nodes onto the machine's rows; what it does not know is said.

    Parameters
    ----------
    machine : Machine
    slurm : SlurmNodes

    Returns
    -------
    bool (n,)

    Raises
    ------
    PlanError
        The two share no node name.
    """
    import numpy as np

    order = np.argsort(machine.names)
    at = np.searchsorted(machine.names, slurm.names, sorter=order)
    at = order[np.minimum(at, len(order) - 1)]
    known = machine.names[at] == slurm.names
    if not known.any() and len(known):
        raise PlanError(
            f"Slurm and {machine.name} share no node name",
            f"Slurm has {slurm.names[0]}, the machine {machine.names[0]}",
        )
    if not known.all():
        lost = slurm.names[~known]
        say(f"nidmap: {len(lost)} of Slurm's nodes are not in {machine.name}, first {lost[0]}")
    mask = np.zeros(len(machine), dtype=bool)
    mask[at[known & slurm.free]] = True
    return mask


def _weights(machine: Machine, slurm: SlurmNodes | None) -> NDArray[np.int64] | None:
    import numpy as np

    if slurm is None or slurm.weight is None:
        return None
    by_name = dict(zip(slurm.names.tolist(), slurm.weight.tolist(), strict=True))
    return np.array([by_name.get(name, 1) for name in machine.names.tolist()], dtype=np.int64)


def _check(machine: Machine, result: Plan, wish: Wish) -> dict[str, Any]:
    """Ask ``sbatch --test-only`` for the list and for the same job without it."""
    from placement.slurm import check_plan

    return check_plan(result.nodes, len(result.nodes), **wish.slurm).document()


def _text(machine: Machine, result: Plan, wish: Wish, checked: dict[str, Any] | None) -> str:
    from placement.emit import Emission, emit

    emission = Emission(
        nodes=result.nodes,
        nids=tuple(machine.nid[result.rows].tolist()),
        cnames=tuple(machine.cname[result.rows].tolist()),
        ppn=wish.ppn,
        scheduler=machine.scheduler,
        slack=wish.slack,
        remarks=_remarks(machine, result, wish),
        inside=_inside(wish) if wish.slack else "",
        document=_document(machine, result, wish, checked) if wish.form == "json" else {},
        **_softer(machine, result, wish.form),
    )
    return emit(emission, wish.form)


def _remarks(machine: Machine, result: Plan, wish: Wish) -> tuple[str, ...]:
    """Return the comment lines of a header."""
    made = (f"nidmap plan: {result.why}", f"strategy {wish.strategy} on {_on(machine)}")
    ranks = f"planned together with the order of the ranks in {wish.order_out}"
    return made if wish.order_out is None else (*made, ranks)


def _softer(machine: Machine, result: Plan, form: str) -> dict[str, Any]:
    """Work out what the two softer forms need, only when one is asked for."""
    import numpy as np

    if form == "exclude":
        from placement.lookup import nodes_of

        region = machine.coords[:, 0]
        outside = machine.compute & ~np.isin(region, region[result.rows])
        return {"outside": nodes_of(machine, np.flatnonzero(outside))}
    if form == "switches":
        from placement.switches import slurm_switches

        leaves = slurm_switches(machine).leaf_of[result.rows]
        return {"switches": len(np.unique(leaves))}
    return {}


def _inside(wish: Wish) -> str:
    """Return the command that chooses the job's nodes out of what it got."""
    import shlex

    specs = [part for spec in wish.specs for part in ("-m", spec)]
    blade = ["--per-blade", str(wish.per_blade)] if wish.strategy == "blades" else []
    words = ["nidmap", "plan", *specs, "-N", str(wish.count), "--strategy", wish.strategy, *blade]
    return shlex.join(words) + ' --from "$SLURM_JOB_NODELIST"'


def _document(
    machine: Machine, result: Plan, wish: Wish, checked: dict[str, Any] | None
) -> dict[str, Any]:
    from placement.topologies import wiring_text

    document: dict[str, Any] = {
        "schema": "nidmap.plan/1",
        "machine": machine.name,
        "topology": machine.topology.kind,
        "wiring": wiring_text(machine),
        "notes": list(machine.notes),
        "sources": list(machine.sources),
        "strategy": result.strategy,
        "seed": wish.seed,
        "count": len(result.nodes),
        "slack": wish.slack,
        "nodelist": result.nodes.fold(),
        "nodes": list(result.nodes),
        "nids": machine.nid[result.rows].tolist(),
        "cnames": machine.cname[result.rows].tolist(),
        "free": result.facts["free"],
        "touches": result.facts["touches"],
        "default": result.facts["default"],
        "why": result.why,
        "warnings": list(result.warnings),
    }
    document |= result.facts["predicted"]
    if result.strategy.startswith("blades"):
        from dataclasses import asdict

        from placement.planners.blades_linked import joined

        document["joined"] = asdict(joined(machine, result.rows))
    if checked is not None:
        document["check"] = checked
    return document


def _on(machine: Machine) -> str:
    """Name the machine and how its routers are joined."""
    from placement.topologies import wiring_text

    return f"{machine.name}, wiring {wiring_text(machine)}"


def _talk(machine: Machine, result: Plan, wish: Wish, checked: dict[str, Any] | None) -> None:
    """Say on stderr what was chosen and what pinning costs."""
    say(f"{result.strategy} on {_on(machine)}: {result.why}")
    for note in (*machine.notes, *result.warnings):
        say(f"nidmap: {note}")
    _talk_of_ranks(result, wish)
    if checked is not None:
        say(checked["sentence"])
    elif wish.form in PINNING and machine.scheduler in ("", "slurm"):
        say(
            "pinned: the job will wait for exactly these nodes, and the list goes stale; "
            "--check asks Slurm when, --slack, --format exclude or switches pin less"
        )
    if wish.slack and wish.form not in ("sbatch", "exclude", "switches", "json", "pbs"):
        say(f"{wish.slack} nodes more than -N: choose inside the job with {_inside(wish)}")
    sys.stderr.flush()


def _talk_of_ranks(result: Plan, wish: Wish) -> None:
    """Say that the plan needs its order of the ranks, where it does."""
    order = result.facts["predicted"].get("order")
    if not order or not order["needed"]:
        return
    plain, time = order["sorted_time_s"], result.facts["predicted"]["time_s"]
    left = f"{plain / time:.2f} x the time" if plain >= 1.005 * time else "hardly more time"
    if wish.order_out is None:
        say(f"nidmap: needs its order of the ranks ({left} without): --order-out FILE writes it")
    else:
        say(f"nidmap: the order of the ranks is in {wish.order_out} ({left} without it)")
