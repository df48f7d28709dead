# SPDX-License-Identifier: Apache-2.0
"""nidmap: which nodes, in which order, and what does that buy?

The front door. On the command line it finds the command and loads only what
that command needs; in Python it offers the few names that a user imports::

    import nidmap
    machine = nidmap.load_machine("shaheen2")
    plan = nidmap.plan(machine, 216, strategy="blades")
    print(plan.nodes.fold())
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # importing typing takes longer than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from nidmap.placement.load import load_machine
    from nidmap.placement.plan import plan
    from nidmap.rankmap.compare import compare
    from nidmap.rankmap.grid.dims import dims
    from nidmap.rankmap.predict import Job, predict
    from nidmap.rankmap.runtime import cart_create, reorder
    from nidmap.rankmap.search.auto_order import order

__all__ = [
    "Job",
    "cart_create",
    "compare",
    "dims",
    "load_machine",
    "main",
    "order",
    "plan",
    "predict",
    "reorder",
]

#: Garbage collection of a command: loading makes many objects, all of which stay.
RARELY = 100_000, 50, 50

#: Numpy's linear algebra starts a thread a core, which spin and have next to nothing to do.
#: The user's own programs never see it (`nidmap.rankmap.launch.process.job_environment`).
ONE_THREAD = "OPENBLAS_NUM_THREADS", "1"

#: The Python names of the front door and where they live; loaded at first use.
_API = {
    "__version__": ("nidmap.placement", "__version__"),
    "load_machine": ("nidmap.placement.load", "load_machine"),
    "plan": ("nidmap.placement.plan", "plan"),
    "order": ("nidmap.rankmap.search.auto_order", "order"),
    "Job": ("nidmap.rankmap.predict.job", "Job"),
    "predict": ("nidmap.rankmap.predict", "predict"),
    "compare": ("nidmap.rankmap.compare", "compare"),
    "dims": ("nidmap.rankmap.grid.dims", "dims"),
    "reorder": ("nidmap.rankmap.runtime", "reorder"),
    "cart_create": ("nidmap.rankmap.runtime", "cart_create"),
}

#: Our subpackages and their data: in a checkout links to the folders at its top.
_ROOMS = "placement", "rankmap", "workloads", "web", "site-configs"

#: Command -> its location, and its one line of help; in the order in which a job meets them.
_COMMANDS = {
    "site": ("nidmap.placement.commands.site:site", "List, show and check site configurations."),
    "machine": ("nidmap.placement.commands.machine:machine", "Show, export and check a machine."),
    "nodes": (
        "nidmap.placement.commands.nodes:nodes",
        "Fold, expand, sort and look up node lists.",
    ),
    "plan": ("nidmap.placement.commands.plan:plan", "Choose the nodes that a job should run on."),
    "order": ("nidmap.rankmap.commands.order:order", "Order a job's ranks on its nodes."),
    "score": ("nidmap.rankmap.commands.score:score", "Score any order of ranks."),
    "predict": ("nidmap.rankmap.commands.predict:predict", "Predict link loads and time."),
    "compare": ("nidmap.rankmap.commands.compare:compare", "Compare strategies in one table."),
    "run": ("nidmap.rankmap.commands.run:run", "Run a launcher with reordered ranks."),
    "jobs": (
        "nidmap.rankmap.commands.jobs:jobs",
        "Show how past jobs were placed, and what they lost.",
    ),
    "replay": (
        "nidmap.workloads.replay.command:replay",
        "Replay a site's jobs under other policies.",
    ),
    "record": ("nidmap.rankmap.commands.record:record", "Record a program's communication matrix."),
    "ab": ("nidmap.workloads.ab.command:ab", "Measure default and plan with your program."),
    "bench": ("nidmap.workloads.commands:bench", "Measure sorts, FFTs, stencils; A/B tests."),
    "calibrate": ("nidmap.workloads.calibrate.command:calibrate", "Measure a machine's constants."),
    "slurm": ("nidmap.placement.commands.slurm:slurm", "Plan with one line in the job script."),
    "minicray": (
        "nidmap.workloads.minicray.commands:minicray",
        "Emulate a small machine with real links.",
    ),
    "web": ("nidmap.web.commands:web", "Show machine, jobs and plans in a browser."),
    "doctor": (
        "nidmap.rankmap.commands.doctor:doctor",
        "Show what is installed and detected here.",
    ),
}

#: What else a later room or module brings to an earlier one, which may not import it.
_NODES = {"sort": ("nidmap.rankmap.commands.sort:sort", "Sort nodes by their switches.")}
_STRATEGIES = {"auto": "nidmap.rankmap.search.auto:auto"}
_SERVICES = {
    "machine as table": "nidmap.placement.views:to_pandas",
    "machine as graph": "nidmap.placement.views:to_networkx",
    "job": "nidmap.rankmap.predict.job:Job",
    "cost of nodes": "nidmap.rankmap.search.priced:price_choice",
    "launch": "nidmap.workloads.launched:current_launch",
    "job here": "nidmap.rankmap.launch.allocation:job_here",
    "names of launcher": "nidmap.rankmap.launch:names",
    "names of order": "nidmap.rankmap.orders:names",
    "names of pattern": "nidmap.rankmap.pattern:names",
    "slurm launch": "nidmap.rankmap.commands.run:job_step_options",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _API:
        raise AttributeError(f"module 'nidmap' has no attribute {name!r}")
    if _MISSING:
        raise ImportError(_MISSING)
    module, attribute = _API[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def _missing_links(home: str) -> str:
    """Return a line on a checkout whose links were unpacked as files; '' for any other.

    Git on Windows (core.symlinks) and some unpackers of zip files write a file that holds
    the link's target instead.
    """
    if not os.path.isfile(os.path.join(home, "__init__.py")):
        return ""  # imported from an archive
    for room in _ROOMS:
        if not os.path.isdir(os.path.join(home, room)):
            return (
                f"{os.path.join(home, room)} should be a link to ../{room}; clone with "
                "core.symlinks=true, or pip install the checkout"
            )
    return ""


def _open_rooms() -> str:
    """Tell the rooms what later ones provide; return why they cannot be opened, or ''."""
    missing = _missing_links(os.path.dirname(os.path.abspath(__file__)))
    if not missing:
        try:
            hooks = import_module("nidmap.placement.hooks")
        except OSError as error:
            return f"cannot be read: {error}"
        hooks.COMMANDS.update(_COMMANDS)
        hooks.NODES.update(_NODES)
        hooks.STRATEGIES.update(_STRATEGIES)
        hooks.SERVICES.update(_SERVICES)
    return missing


def main(*words: str) -> None:
    """Run the command line (the ``nidmap`` command and ``python -m nidmap``).

    Parameters
    ----------
    *words
        A command that the command line's own words follow: what ``python -m
        nidmap.workloads.sort`` stands for.
    """
    sys.argv[1:1] = words
    gc.set_threshold(*RARELY)
    os.environ.setdefault(*ONE_THREAD)
    if _MISSING:
        sys.stderr.write(f"nidmap: {_MISSING}\n")
        sys.exit(2)
    try:
        import_module("nidmap.placement.commands").main()
    except KeyboardInterrupt:  # before or behind what says so in a better place
        sys.stderr.write("nidmap: interrupted\n")
        sys.exit(130)
    except (ImportError, OSError) as error:  # a fault of the disk before the command line stands
        sys.stderr.write(f"nidmap: cannot be loaded: {error}\n")
        sys.exit(5)


_MISSING = _open_rooms()
