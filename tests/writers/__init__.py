# SPDX-License-Identifier: Apache-2.0
"""Makers of dumps: a machine in, the text that its tool would print out; one file a format.

What is written reads back to an equal machine: the oracle of round trips, and
the source of dumps for tests of commands. A format that cannot say what a
machine is raises UsageError.
"""

from importlib import import_module
from pathlib import Path

from nidmap.placement import exports
from nidmap.placement.readers import BUNDLED

#: Every format that is made here, beside those that the product writes: each in a file of its name.
_HERE = {path.stem.replace("_", "-") for path in Path(__file__).parent.glob("*.py")}
MADE = tuple(name for name in (*BUNDLED, "scontrol-topology") if name in _HERE)
FORMATS = (*MADE, "topology-conf", "topology-yaml")


def write(machine, form):
    """Return a machine as the text of a dump."""
    if form not in MADE:
        return exports.write(machine, form)
    return import_module(f"tests.writers.{form.replace('-', '_')}").write(machine)
