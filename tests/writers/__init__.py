"""Makers of dumps: a machine in, the text that its tool would print out; one file a format.

What is written reads back to an equal machine: the oracle of round trips, and
the source of dumps for tests of commands. A format that cannot say what a
machine is raises UsageError.
"""

from importlib import import_module

from placement import writers

#: Every format that is made here, beside those that the product writes.
MADE = (
    *("xtprocadmin", "xtdb2proc", "meshcoords", "torus-coordinates", "system-map"),
    *("rtr-aries", "rtr-gemini", "sls", "scontrol-topology", "sinfo"),
    *("ibnetdiscover", "ibnetdiscover-ports"),
)
FORMATS = (*MADE, *writers.BUNDLED)


def write(machine, form):
    """Return a machine as the text of a dump."""
    if form not in MADE:
        return writers.write(machine, form)
    return import_module(f"tests.writers.{form.replace('-', '_')}").write(machine)
