# SPDX-License-Identifier: Apache-2.0
"""What ``nidmap plan`` writes about a plan: the job's header, the document, the remarks."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.commands.common import SENDING
from nidmap.placement.emit import Emission, HeaderJob, emit
from nidmap.placement.errors import UsageError
from nidmap.placement.lookup import nodes_of
from nidmap.placement.machine import Machine
from nidmap.placement.nodelist import NodeList
from nidmap.placement.plan import overfull
from nidmap.placement.planners import TREE_PLANNERS, Baseline, Plan
from nidmap.placement.planners.blades import count_joined
from nidmap.placement.scheduler.baseline import Exclusion, best_exclusion
from nidmap.placement.topologies import wiring_text
from nidmap.placement.ui import say, warn

if TYPE_CHECKING:
    from nidmap.placement.commands.candidates import Candidates
    from nidmap.placement.slurm.starts import PlanCheck


class PlanOptions(SimpleNamespace):
    """The options of the command, with defaults of `form` and `strategy` resolved."""

    @property
    def traffic(self) -> dict[str, Any]:
        """The options that describe the job's traffic, by name."""
        names = ("pattern", *SENDING, "deadline")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def slurm(self) -> dict[str, str | None]:
        """The options that filter Slurm's nodes."""
        return {name: getattr(self, name) for name in ("partition", "constraint", "reservation")}


#: Formats that pin the job to exactly the plan's nodes.
_PINNING = ("nodelist", "lines", "sbatch", "pbs")


@dataclass(frozen=True)
class PlanReport:
    """A plan, and the options it was made with."""

    machine: Machine
    plan: Plan
    options: PlanOptions
    offered: Candidates
    own: Baseline  # the scheduler's own choice, whatever the plan is compared with

    @cached_property
    def job(self) -> HeaderJob:
        """What the job's header asks for.

        A softer header has no list of all nodes. It asks for what bound the
        choice: the nodes to have, and those that the user's lists rule out.
        """
        options, slurm, switches = self.options, self.offered.slurm, self.machine.switches
        blocks = switches is not None and switches.kind == "block"
        segment = self.plan.facts["predicted"].get("segment") or options.segment or 0
        pinned = HeaderJob(
            count=options.count,
            ppn=options.ppn,
            partition=options.partition if slurm is None else slurm.partition,
            constraint=options.constraint,
            reservation=options.reservation,
            nodelist=self.plan.nodes,
            segment=segment if blocks else 0,
            leaves=self._leaves(),
        )
        if options.switch_wait is not None:
            return self._with_switches(pinned)
        if options.form != "exclude":
            return self._without_list(pinned) if 0 < pinned.segment < options.count else pinned
        return replace(
            pinned,
            nodelist=nodes_of(self.machine, self.offered.include),
            exclude=self._outside(),
        )

    def _leaves(self) -> int:
        """Return the plan's number of leaf switches; 0 where Slurm ignores ``--switches``.

        topology/tree alone does (sbatch(1)), and not with TopologyParam=Dragonfly.
        """
        switches = self.machine.switches
        if switches is None or self.own.strategy not in TREE_PLANNERS:
            return 0
        leaves = np.unique(switches.leaf_of[self.plan.rows])
        return 0 if (leaves < 0).any() else len(leaves)

    def _with_switches(self, pinned: HeaderJob) -> HeaderJob:
        """Return a job on any nodes of as few leaf switches as the plan, waiting for them."""
        if not pinned.leaves:
            words = self.own.words
            what = f"--switch-wait needs a Slurm that honours --switches: here it is {words}"
            raise UsageError(what, "topology/tree does, with all nodes below its switches")
        include = nodes_of(self.machine, self.offered.include)
        exclude = nodes_of(self.machine, np.unique(self.offered.exclude))
        return replace(pinned, nodelist=include, exclude=exclude, wait=self.options.switch_wait)

    @cached_property
    def exclusion(self) -> Exclusion:
        """The part of the machine to which ``--format exclude`` restricts the job."""
        return best_exclusion(self.machine, self.plan, self.own)

    def _without_list(self, pinned: HeaderJob) -> HeaderJob:
        """Return a segmented job that can only get the plan's nodes, without listing them.

        Slurm 24.11 takes no list of nodes for such a job, and 25.05 none but the whole one.
        """
        outside = np.setdiff1d(np.flatnonzero(self.machine.compute), self.plan.rows)
        return replace(pinned, nodelist=NodeList(), exclude=nodes_of(self.machine, outside))

    def _outside(self) -> NodeList:
        """Return the nodes to exclude for a job that does not list its nodes."""
        answer = self.offered.availability
        allowed = self.machine.compute.copy()
        if self.exclusion.pays or self.plan.outlook is None:  # a plain strategy is always obeyed
            allowed &= self.exclusion.inside
        if answer is not None and answer.named:
            allowed &= np.isin(np.arange(len(allowed)), answer.rows)
        allowed[self.offered.exclude] = False
        outside = self.machine.compute & ~allowed
        if self.offered.slurm is not None:
            outside &= np.isin(self.machine.names, self.offered.slurm.names)
        return nodes_of(self.machine, np.flatnonzero(outside))

    def text(self, check: PlanCheck | None) -> str:
        """Return the plan in the requested format."""
        machine, rows = self.machine, self.plan.rows
        emission = Emission(
            nodes=self.plan.nodes,
            nids=tuple(machine.nid[rows].tolist()),
            cnames=tuple(machine.cname[rows].tolist()),
            job=self.job,
            batch=machine.batch,
            remarks=self._remarks(),
            document=self._document(check) if self.options.form == "json" else {},
        )
        return emit(emission, self.options.form)

    def _remarks(self) -> tuple[str, ...]:
        """Return the comment lines of a header."""
        remarks = [f"nidmap plan: {self.plan.why}", f"strategy {self.plan.strategy} on {self._on}"]
        if self.options.form == "exclude":
            remarks.append(self.exclusion_words())
        elif self.plan.facts["waits"]:
            remarks.append(self.plan.facts["waits"])
        if self.options.order_out is not None:
            remarks.append(f"planned together with the rank order in {self.options.order_out}")
        return tuple(remarks)

    @property
    def _on(self) -> str:
        """The machine, and how its routers are connected."""
        return f"{self.machine.name}, wiring {wiring_text(self.machine)}"

    def _document(self, check: PlanCheck | None) -> dict[str, Any]:
        document = plan_document(self.machine, self.plan, self.options.seed)
        document["warnings"] += self._warnings()
        return document if check is None else {**document, "check": check.document()}

    def _warnings(self) -> list[str]:
        """Return warnings about the job on these nodes."""
        ranks = np.full(len(self.plan.rows), self.options.ppn or 1)
        warning = overfull(self.machine, self.plan.rows, ranks)
        return [warning] if warning else []

    def say(self, check: PlanCheck | None) -> None:
        """Report on stderr what was chosen and how long pinning delays the job."""
        options = self.options
        say(f"{self.plan.strategy} on {self._on}: {self.plan.why}")
        for note in (*self.machine.notes, *self.plan.warnings, *self._warnings()):
            say(f"nidmap: {note}")
        self._say_order()
        if options.form == "exclude":
            say(f"nidmap: {self.exclusion_words()}")
        if check is not None:
            (warn if check.pinned.never else say)(check.sentence())
        elif options.form in _PINNING and self.machine.scheduler in ("", "slurm"):
            say(
                "pinned: the job waits for exactly these nodes, which may not stay free until it "
                "is submitted; --check asks Slurm when it would start; --format exclude waits less,"
                " but may lose the gain"
            )
        sys.stderr.flush()

    def exclusion_words(self) -> str:
        """Describe what Slurm would choose for a header that does not list the nodes."""
        exclusion = self.exclusion
        if exclusion.rows is None:
            return f"Slurm would leave the job pending in {exclusion.part}"
        nodes = nodes_of(self.machine, exclusion.rows).unique.fold(sort=True)
        lead = f"Slurm chooses in {exclusion.part}, now {nodes}"
        if not exclusion.pays and self.plan.outlook is not None:
            return f"no nodes excluded (no gain): {lead} ({exclusion.words})"
        why = exclusion.words if exclusion.pays else "as it does anyway"
        return f"{lead}: {why}" if why else lead

    def _say_order(self) -> None:
        """Point out that the plan depends on its rank order, where it does."""
        predicted = self.plan.facts["predicted"]
        order = predicted.get("order")
        if not order or not order["needed"]:
            return
        if predicted["chosen"]["by"] == "J":
            without = "a higher J"
        else:
            ratio = order["sorted_time_s"] / predicted["time_s"]
            without = f"predicted {ratio:.2f}x slower" if ratio >= 1.005 else "hardly slower"
        path = self.options.order_out
        if path is None:
            say(
                f"nidmap: this plan needs its rank order (without it: {without}); "
                "--order-out FILE writes it"
            )
        else:
            say(f"nidmap: the rank order is in {path} (without this file: {without})")


def plan_document(machine: Machine, plan: Plan, seed: int = 0) -> dict[str, Any]:
    """Return a plan as the document ``nidmap.plan/1``.

    `seed`: that it was made with.
    """
    document: dict[str, Any] = {
        "schema": "nidmap.plan/1",
        "machine": machine.name,
        "topology": machine.topology.kind,
        "wiring": wiring_text(machine),
        "notes": list(machine.notes),
        "sources": list(machine.sources),
        "strategy": plan.strategy,
        "seed": seed,
        "count": len(plan.nodes),
        "nodelist": plan.nodes.fold(),
        "nodes": list(plan.nodes),
        "nids": machine.nid[plan.rows].tolist(),
        "cnames": machine.cname[plan.rows].tolist(),
        "free": plan.facts["free"],
        "touches": plan.facts["touches"],
        "default": plan.facts["default"],
        "why": plan.why,
        "warnings": list(plan.warnings),
        **plan.facts["predicted"],
    }
    if plan.strategy.startswith("blades"):
        document["joined"] = asdict(count_joined(machine, plan.rows))
    return document
