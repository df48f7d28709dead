"""The kernels' machine code: made by numba once, kept on disk, loaded without numba.

Importing numba and reading its own cache take four tenths of a second, half
of what mapping 4,096 ranks takes. The machine code itself loads in a hundredth:
numba makes a C function of each kernel that others call (`Native`), its object
code is kept in a file, and llvmlite alone loads it in later runs. What the code
calls are C functions of numba's two extension modules, which are loaded without
the rest of it, and of Python.

A file is for one version of the sources, of Python, numba and llvmlite, and for
one kind of processor: its name holds a hash of these. Whatever is amiss with
it, numba compiles anew; where numba is not installed, the kernels run as plain
Python.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import json
import os
import sys
from functools import cache, cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankmap.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Native", "anneal", "block_splits", "compiled", "installed", "multisect", "rework"]

#: What a kernel's machine code depends on.
SOURCES = ("annealing.py", "jit.py", "kernels.py", "native.py")

#: numba's extension modules that the code calls, and how their functions are called there.
HELPERS = (("numba.core.runtime._nrt_python", "NRT_"), ("numba._helperlib", "numba_"))


class Code(NamedTuple):
    """A kernel's object code.

    Attributes
    ----------
    name : str
        Of the C function in it.
    needs : list of str
        Functions and data that it uses and does not hold.
    object : bytes
    """

    name: str
    needs: list[str]
    object: bytes


class Native:
    """A kernel that is called from outside, as machine code where that can be had.

    Parameters
    ----------
    kernel : str
        Its module and name.
    arguments : str
        What it takes: a numpy type each, ``:1`` or ``:2`` behind it for an
        array of so many dimensions. Arrays are C-contiguous, and the kernel
        writes what it finds into them: nothing is returned.
    """

    def __init__(self, kernel: str, arguments: str) -> None:
        self.module, _, self.name = kernel.rpartition(".")
        self.kinds = [(t, int(d or 0)) for t, _, d in (a.partition(":") for a in arguments.split())]

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel.

        Raises
        ------
        MemoryError
            There is no room for its tables.
        """
        if self.code is None:
            self.plain(*arguments)
            return
        ended = np.zeros(1, dtype=np.int64)
        self.code(*self._words(arguments), ended.__array_interface__["data"][0])
        if not ended[0]:
            raise MemoryError(f"no room for {self.name}")

    @property
    def plain(self) -> Any:
        """The kernel itself: numba's, or plain Python."""
        return getattr(importlib.import_module(self.module), self.name)

    @cached_property
    def code(self) -> Callable[..., None] | None:
        """The machine code, None where there is no numba."""
        if not installed():
            return None
        return self._kept() or self._compiled()

    def _words(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Return arguments as C takes them: of an array its place and extents."""
        out = []
        for given, (dtype, dimensions) in zip(arguments, self.kinds, strict=True):
            if not dimensions:
                out.append(given)
                continue
            if given.dtype != dtype or given.ndim != dimensions or not given.flags.c_contiguous:
                raise TypeError(f"{self.name}: {given.dtype} array for {dtype}:{dimensions}")
            out += [given.__array_interface__["data"][0], *given.shape]
        return out

    def _kept(self) -> Callable[..., None] | None:
        """Return the code of an earlier run; None where there is none that is whole and fits."""
        try:
            for path in self.paths():
                found = read(path)
                if found is not None and ready(found):
                    return self._callable(loaded(found))
        except Exception:  # whatever it is, numba can still compile
            return None
        return None

    def paths(self) -> list[Path]:
        """Return the files that the code may be kept in."""
        return [folder / f"{self.name}-{fingerprint()}.code" for folder in folders()]

    def _callable(self, address: int) -> Callable[..., None]:
        import ctypes as c

        known = {"float64": c.c_double, "float32": c.c_float, "int64": c.c_int64}
        types: list[Any] = []
        for dtype, dimensions in self.kinds:
            whole = [c.c_void_p, *[c.c_int64] * dimensions]
            types += whole if dimensions else [known[dtype]]
        return c.CFUNCTYPE(None, *types, c.c_void_p)(address)

    def _compiled(self) -> Callable[..., None] | None:
        """Compile the code and keep it; None where it cannot be compiled."""
        step()
        try:
            numba: Any = importlib.import_module("numba")
            step()
            wanted = numba.types.void(*self._types(numba.types))
            made = numba.cfunc(wanted)(self._bridge(numba.carray))
            step()
        except Exception:  # what numba raises it documents nowhere; the kernel itself still runs
            return None
        keep(made, self.paths())
        call = self._callable(made.address)
        call.made = made  # type: ignore[attr-defined]  # numba frees code that nobody holds
        return call

    def _types(self, types: Any) -> list[Any]:
        """Return numba's types of the C function's arguments."""
        out = []
        for dtype, dimensions in self.kinds:
            kind = getattr(types, dtype)
            out += [types.CPointer(kind), *[types.int64] * dimensions] if dimensions else [kind]
        return [*out, types.CPointer(types.int64)]

    def _bridge(self, carray: Any) -> Callable[..., None]:
        """Return the C function in Python: places and extents are arrays again."""
        given, words = [], []
        for k, (_, dimensions) in enumerate(self.kinds):
            extents = [f"n{k}_{d}" for d in range(dimensions)]
            words += [f"a{k}", *extents]
            given.append(f"carray(a{k}, ({', '.join(extents)},))" if dimensions else f"a{k}")
        text = (
            f"def bridge({', '.join(words)}, ended):\n"
            f"    kernel({', '.join(given)})\n"
            f"    carray(ended, (1,))[0] = 1\n"
        )
        names: dict[str, Any] = {"kernel": self.plain, "carray": carray}
        exec(text, names)  # noqa: S102  # numba wants a function of so many arguments
        made: Callable[..., None] = names["bridge"]
        return made


def installed() -> bool:
    """Return whether numba is there and may compile."""
    off = os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0")
    return not off and _path() is not None


@cache
def _path() -> Path | None:
    """Return where numba is installed, None where it is not."""
    try:
        found = find_spec("numba")
    except (ImportError, ValueError):
        return None
    where = found.submodule_search_locations if found else None
    return Path(next(iter(where))) if where else None


def folders() -> list[Path]:
    """Return where code is kept: beside the sources, else in the user's cache directory."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(__file__).parent / "__pycache__", Path(home) / "nidmap"]


@cache
def fingerprint() -> str:
    """Return a hash of all that the machine code depends on."""
    import llvmlite.binding as llvm

    here, numba = Path(__file__).parent, _path() or Path()
    files = [*(here / name for name in SOURCES), numba / "_version.py"]
    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    about = repr((sys.version, llvm.llvm_version_info, processor, os.environ.get("NUMBA_OPT")))
    return hashlib.sha256(
        b"\0".join([about.encode(), *(f.read_bytes() for f in files)])
    ).hexdigest()[:24]


def read(path: Path) -> Code | None:
    """Return the code in a file, None where it is missing or not whole."""
    try:
        head, _, held = path.read_bytes().partition(b"\n")
        about = json.loads(head)
        if hashlib.sha256(held).hexdigest() == about["sha256"]:
            return Code(about["name"], about["needs"], held)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None


def keep(made: Any, paths: list[Path]) -> None:
    """Write a kernel's code to the first place that takes it; nowhere is all right too."""
    try:
        library = made._library
        whole = library._get_compiled_object()
        module = library._final_module
        needs = [v.name for v in (*module.functions, *module.global_variables) if v.is_declaration]
        about = {
            "name": made._wrapper_name,
            "needs": sorted(n for n in needs if not n.startswith("llvm.")),
            "sha256": hashlib.sha256(whole).hexdigest(),
        }
        raw = json.dumps(about).encode() + b"\n" + whole
    except Exception:  # another numba than is known here
        return
    for path in paths:
        if written(path, raw):
            return


def written(path: Path, raw: bytes) -> bool:
    """Write a file as a whole, and return whether that could be done."""
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(raw)
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        return False
    return True


def ready(code: Code) -> bool:
    """Return whether all that some code calls is there; LLVM would end the process otherwise."""
    import llvmlite.binding as llvm

    engine()  # before that, LLVM does not look into this process
    for module, prefix in HELPERS:
        for name, address in helpers(module).items():
            llvm.add_symbol(name if name.startswith("_") else prefix + name, address)
    for name in code.needs:
        if name.startswith("PyExc_"):  # to numba the exception itself, not where C keeps it
            llvm.add_symbol(name, id(getattr(builtins, name.removeprefix("PyExc_"))))
    return all(llvm.address_of_symbol(name) for name in code.needs)


@cache
def helpers(name: str) -> dict[str, int]:
    """Return the C functions of one of numba's extension modules and where they are."""
    known = sys.modules.get(name)
    if known is None:
        folder = _path() or Path()
        short = name.rpartition(".")[2]
        inner = name.split(".")[1:-1]
        suffixes = EXTENSION_SUFFIXES
        path = next(p for s in suffixes if (p := folder.joinpath(*inner, short + s)).exists())
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(name)
        known = module_from_spec(spec)
        spec.loader.exec_module(known)
        sys.modules.pop(name, None)  # numba itself is still to be imported
    found: dict[str, int] = known.c_helpers
    return found


@cache
def engine() -> Any:
    """Return what loads machine code, and keeps it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def loaded(code: Code) -> int:
    """Load object code and return the address of its function."""
    import llvmlite.binding as llvm

    engine().add_object_file(llvm.ObjectFileRef.from_data(code.object))
    engine().finalize_object()
    return int(engine().get_function_address(code.name))


def compiled() -> bool:
    """Return whether the kernels' code is there already, or none is wanted."""
    if not installed():
        return True
    kernels = (anneal, block_splits, multisect, rework)
    try:
        return all(any(path.exists() for path in kernel.paths()) for kernel in kernels)
    except Exception:  # llvmlite is missing or another one than is known here
        return False


_GRAPH = "int32:1 int32:1"

anneal = Native(
    "rankmap.refine.annealing.anneal",
    f"{_GRAPH} float32:1 int32:1 int64:1 float32:2 float32:2 float64 float64 float64 uint64:1",
)
block_splits = Native("rankmap.refine.kernels.block_splits", "int64:2 int64:1 int64:2")
multisect = Native(
    "rankmap.refine.kernels.multisect",
    f"{_GRAPH} float64:1 int64:2 int64:1 int64:1 int64:1 int64:1 float64:1 float64:1"
    " float64:2 float64 uint64:1 int32:1",
)
rework = Native(
    "rankmap.refine.kernels.rework",
    f"{_GRAPH} float64:1 int32:1 int64:1 float64:2 float64:2 int64:1 float64 float64 uint64:1",
)
