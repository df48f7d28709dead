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
    from rankmap.dims import dims
    from rankmap.order import order
    from rankmap.predict import predict
    from rankmap.record import record
    from rankmap.runtime import cart_create, reorder

__all__ = [
    "cart_create",
    "compare",
    "dims",
    "load_machine",
    "main",
    "order",
    "plan",
    "predict",
    "record",
    "reorder",
]
__version__ = "0.1.0"

#: Garbage collection of a command: loading makes many objects, all of which stay.
RARELY = 100_000, 50, 50

#: Numpy's linear algebra starts a thread a core, which spin and have next to nothing to do.
ONE_THREAD = "OPENBLAS_NUM_THREADS", "1"

#: The Python names of the front door and where they live; loaded at first use.
_API = {
    "load_machine": ("placement.load", "load_machine"),
    "plan": ("placement.plan", "plan"),
    "order": ("rankmap.order", "order"),
    "predict": ("rankmap.predict", "predict"),
    "compare": ("rankmap.compare", "compare"),
    "dims": ("rankmap.dims", "dims"),
    "record": ("rankmap.record", "record"),
    "reorder": ("rankmap.runtime", "reorder"),
    "cart_create": ("rankmap.runtime", "cart_create"),
}

_ROOMS = ("placement", "rankmap", "workloads", "web")


def __getattr__(name: str) -> Any:
    """Load a name of the front door when it is first asked for."""
    if name not in _API:
        raise AttributeError(f"module 'nidmap' has no attribute {name!r}")
    hidden = shadowed()
    if hidden:
        raise ImportError(hidden)
    module, attribute = _API[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def shadowed() -> str:
    """Return one line naming the user's file that hides a package of ours, '' for none.

    Our packages are called `placement`, `rankmap`, `workloads` and `web`; a
    user's own ``placement.py`` in the working directory comes first on
    Python's path under ``python -m`` and in a script's own folder.
    """
    home = os.path.dirname(os.path.abspath(__file__))
    for room in _ROOMS:
        spec = find_spec(room)
        where = _location(spec)
        if where is None:
            return f"nidmap's package {room!r} is missing from {home}; install nidmap again"
        if os.path.realpath(os.path.dirname(where)) != os.path.realpath(home):
            return f"{where} hides nidmap's own package {room!r}; rename it or run elsewhere"
    return ""


def _location(spec: Any) -> str | None:
    """Return the file or folder that an import of this spec would take."""
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return str(next(iter(spec.submodule_search_locations)))
    return str(spec.origin)


def main() -> None:
    """Run the command line (the ``nidmap`` command and ``python -m nidmap``)."""
    gc.set_threshold(*RARELY)
    if sys.argv[1:2] not in (["run"], ["minicray"]):  # what these start gets the user's own
        os.environ.setdefault(*ONE_THREAD)
    hidden = shadowed()
    if hidden:
        sys.stderr.write(f"nidmap: {hidden}\n")
        sys.exit(2)
    if sys.argv[1:2] == ["bench"]:  # ranks to start need no command line before them
        import_module("workloads.launched").start(sys.argv[2:])
    import_module("placement.commands").main()


if __name__ == "__main__":
    main()
