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
from importlib.util import find_spec

TYPE_CHECKING = False  # importing typing takes longer than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from placement.load import load_machine
    from placement.plan import plan
    from rankmap.compare import compare
    from rankmap.grid.dims import dims
    from rankmap.predict import Job, predict
    from rankmap.runtime import cart_create, reorder
    from rankmap.search.auto_order import order

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
#: The user's own programs never see it (`rankmap.launch.process.job_environment`).
ONE_THREAD = "OPENBLAS_NUM_THREADS", "1"

#: The Python names of the front door and where they live; loaded at first use.
_API = {
    "__version__": ("placement", "__version__"),
    "load_machine": ("placement.load", "load_machine"),
    "plan": ("placement.plan", "plan"),
    "order": ("rankmap.search.auto_order", "order"),
    "Job": ("rankmap.predict.job", "Job"),
    "predict": ("rankmap.predict", "predict"),
    "compare": ("rankmap.compare", "compare"),
    "dims": ("rankmap.grid.dims", "dims"),
    "reorder": ("rankmap.runtime", "reorder"),
    "cart_create": ("rankmap.runtime", "cart_create"),
}

#: Our packages and how what each says of itself begins.
_ROOMS = {
    "placement": b'"""Nodes and networks',
    "rankmap": b'"""Rank orders',
    "workloads": b'"""Workloads that measure',
    "web": b'"""The NID marker',
}

#: Command -> where it lives, and its one line of help; in the order in which a job meets them.
_COMMANDS = {
    "site": ("placement.commands.site:site", "List, show and check site configurations."),
    "machine": ("placement.commands.machine:machine", "Show, export and check a machine."),
    "nodes": ("placement.commands.nodes:nodes", "Fold, expand, sort and look up node lists."),
    "plan": ("placement.commands.plan:plan", "Choose the nodes that a job should sit on."),
    "order": ("rankmap.commands.order:order", "Order a job's ranks on its nodes."),
    "score": ("rankmap.commands.worth:score", "Score an order of ranks, anyone's."),
    "predict": ("rankmap.commands.worth:predict", "Predict link loads and time."),
    "compare": ("rankmap.commands.compare:compare", "Compare strategies in one table."),
    "run": ("rankmap.commands.run:run", "Run a launcher with reordered ranks."),
    "jobs": (
        "rankmap.commands.jobs:jobs",
        "Show how past jobs were placed, and what they lost.",
    ),
    "record": ("rankmap.commands.record:record", "Record a program's communication matrix."),
    "ab": ("workloads.ab.command:ab", "Measure default and plan with your program."),
    "bench": ("workloads.commands:bench", "Measure sorts, FFTs, stencils; A/B tests."),
    "calibrate": ("workloads.calibrate.command:calibrate", "Measure a machine's constants."),
    "slurm": ("placement.commands.slurm:slurm", "Plan by one line in the job script."),
    "minicray": ("workloads.minicray.commands:minicray", "A small machine of real links."),
    "web": ("web.commands:web", "Show machine, jobs and plans in a browser."),
}

#: What else a later room brings to an earlier one, which may not import it.
_NODES = {"sort": ("rankmap.commands.sort:sort", "Sort nodes by their switches.")}
_STRATEGIES = {"auto": "rankmap.search.planner:auto"}
_SERVICES = {
    "job": "rankmap.predict.job:Job",
    "ranks followed": "workloads.minicray.following:ranks_course",
    "job here": "rankmap.launch.allocation:job_here",
    "names of launcher": "rankmap.launch:names",
    "names of order": "rankmap.orders:names",
    "names of pattern": "rankmap.pattern:names",
    "slurm launch": "rankmap.commands.run:step_options",
}


def __getattr__(name: str) -> Any:
    """Load a name of the front door when it is first asked for."""
    if name not in _API:
        raise AttributeError(f"module 'nidmap' has no attribute {name!r}{_instead(name)}")
    if _HIDDEN:
        raise ImportError(_HIDDEN)
    module, attribute = _API[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def _instead(name: str) -> str:
    """Return what does now what a name of an earlier release did, '' for any other."""
    if _HIDDEN:
        return ""
    instead = import_module("placement.support.old_spellings").GONE.get(f"nidmap.{name}")
    return f": {instead}" if instead else ""


def shadowed() -> str:
    """Return one line naming the file that hides or replaces a package of ours, '' for none.

    Our packages are called `placement`, `rankmap`, `workloads` and `web`; a
    user's own ``placement.py`` in the working directory comes first on
    Python's path under ``python -m`` and in a script's own folder, and another
    distribution's ``web/__init__.py`` (web.py has one) is installed over ours.
    """
    home = os.path.dirname(os.path.abspath(__file__))
    for room, beginning in _ROOMS.items():
        spec = find_spec(room)
        where = _location(spec)
        if where is None:
            return f"nidmap's package {room!r} is missing from {home}; install nidmap again"
        if os.path.realpath(os.path.dirname(where)) != os.path.realpath(home):
            return f"{where} hides nidmap's own package {room!r}; rename it or run elsewhere"
        if not _text(spec).startswith(beginning):
            return (
                f"another distribution's files stand in nidmap's package {room!r} in {where}; "
                "install nidmap again, in an environment of its own"
            )
    return ""


def _text(spec: Any) -> bytes:
    """Return the text of a package's ``__init__.py``, b'' where there is none."""
    try:
        return bytes(spec.loader.get_data(spec.origin))
    except (AttributeError, TypeError):
        return b""


def _location(spec: Any) -> str | None:
    """Return the file or folder that an import of this spec would take."""
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return str(next(iter(spec.submodule_search_locations)))
    return str(spec.origin)


def _open_rooms() -> str:
    """Tell the rooms what later ones bring; return why they cannot be opened, or ''."""
    try:
        hidden = shadowed()
        hooks = import_module("placement.hooks") if not hidden else None
    except OSError as error:
        return f"cannot be read: {error}"
    if hooks is not None:
        hooks.COMMANDS.update(_COMMANDS)
        hooks.NODES.update(_NODES)
        hooks.STRATEGIES.update(_STRATEGIES)
        hooks.SERVICES.update(_SERVICES)
    return hidden


def main(*words: str) -> None:
    """Run the command line (the ``nidmap`` command and ``python -m nidmap``).

    Parameters
    ----------
    *words
        A command that the command line's own words follow: what ``python -m
        workloads.sort`` stands for.
    """
    sys.argv[1:1] = words
    gc.set_threshold(*RARELY)
    os.environ.setdefault(*ONE_THREAD)
    if _HIDDEN:
        sys.stderr.write(f"nidmap: {_HIDDEN}\n")
        sys.exit(2)
    try:
        import_module("placement.commands").main()
    except KeyboardInterrupt:  # before or behind what says so in a better place
        sys.stderr.write("nidmap: interrupted\n")
        sys.exit(130)
    except (ImportError, OSError) as error:  # a fault of the disk before the command line stands
        sys.stderr.write(f"nidmap: cannot be loaded: {error}\n")
        sys.exit(5)


_HIDDEN = _open_rooms()

if __name__ == "__main__":
    main()
