"""What a pod template takes, so that its pods are put on the nodes of a plan alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.emit.job import Emission

__all__ = ["affinity"]


def affinity(plan: Emission) -> str:
    """Return ``affinity`` for the ``spec`` of pods: required, by ``kubernetes.io/hostname``."""
    lines = [f"# {line}" for line in plan.remarks]
    lines += [
        "affinity:",
        "  nodeAffinity:",
        "    requiredDuringSchedulingIgnoredDuringExecution:",
        "      nodeSelectorTerms:",
        "      - matchExpressions:",
        "        - key: kubernetes.io/hostname",
        "          operator: In",
        f"          values: {json.dumps(list(plan.nodes))}",
    ]
    return "\n".join(lines) + "\n"
