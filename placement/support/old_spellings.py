"""What left nidmap, and what a user who names it is told: for one release."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["GONE", "replacement"]

_DUMPS = (
    *("xtprocadmin", "xtdb2proc", "meshcoords", "torus-coordinates", "system-map"),
    *("rtr-aries", "rtr-gemini", "sls", "scontrol-topology", "sinfo"),
    *("ibnetdiscover", "ibnetdiscover-ports"),
)

_NOW = "web serve shows the current state, or with --from saved output of sinfo and squeue"
_JOB = "nidmap run --verify asks the ranks where they are, nidmap web serve shows a job's nodes"
_CALLS = "MPI_Alltoall is measured; bench contention and bench isx measure Alltoallv"

#: Commands that had the figures of a machine as options, and what each is behind ``-m`` now.
_PREDICTING = ("plan", "order", "score", "predict", "compare", "run", "ab")
_FIGURES = {
    "routing": "adaptive", "latency": "US", "memory": "GBS", "process": "GBS",
    "payload": "SHARE", "background-load": "GBS",
}  # fmt: skip

#: A command, or what of it has left, as it was typed -> what to use instead.
GONE: dict[str, str] = {
    "site check --against": "nidmap machine check -m SITE -m DUMP lists contradictions",
    "bench ab": "nidmap ab … -- srun -n 64 nidmap bench fft … measures arms in turn",
    "bench report": "-o FILE.csv and FILE.svg of bench and ab are its table and its picture",
    "ab --turns": "each block runs every arm once, in random order",
    "ab --control": "the interval accounts for noise",
    "ab --retries": "a failed launch is retried twice",
    "ab --show": "the program's output is in the folder that --output-dir names",
    "slurm install --job-submit": "--switches only makes the job wait, for Slurm's own choice",
    "bench sort --dtype": "keys have 64 bits",
    "bench sort --stable": "equal keys keep their order",
    "bench sort --unstable": "equal keys keep their order",
    "bench sort --target": "each rank ends with as many items as it started with",
    "bench sort --key-bits": "random keys have 56 bits, as the paper's",
    "bench isx --max-key": "keys are below 2^28",
    "bench isx --width": "weak_iso has buckets of 8192 keys",
    "bench isx --bucketing": "by shift where the width is a power of two, else by division",
    "bench isx --sided": "alltoallv is two-sided; naive, round-robin and random are puts",
    "bench isx --jobs": "run it once a job, each with its own -o FILE.csv",
    "bench alltoall --kind": _CALLS,
    "bench alltoall --spread": _CALLS,
    "bench stencil --partners": "two ranks of each level are timed",
    "bench stencil --chunk": "the size of a transfer is tuned",
    "bench fft --basis": "every axis is periodic; scipy.fft has sines and cosines",
    "bench fft --precision": "data are in double precision",
    "bench fft --direction": "a forward and backward pair is timed, each direction as a phase",
    "bench fft --pieces": "the number of exchanges depends on the size",
    "bench fft --library": "the fastest installed library is used",
    "bench fft --level": "--scaling breaks the fit at the first level with points on both sides",
    "web record": _NOW,
    "web serve --replay": _NOW,
    "score --job": _JOB,
    "score --ask": _JOB,
    "score --order-dir": _JOB,
    "plan --placement-set": "--format pbs names the hosts of the plan",
    "plan --select": "--format pbs names the hosts of the plan",
    "ab --level": "intervals are those of 95 %",
    "plan --format affinity": "nodelist, lines and json name the nodes for any scheduler",
    "order --format mpijob": "hydra, openmpi and json name the node of each rank",
    "order --format kubernetes": "json has the nodes and the slot of each rank",
    "minicray up --ecmp": "a mini-Cray has one path to each node, as routing=single",
    "score --order-format": "--format names the format where the file's suffix does not",
    "predict --order-format": "--format names the format where the file's suffix does not",
    "plan --format json": "--json",
    "order --format json": "--json",
    "nodes sort --format json": "--json",
    "nodes sort --format hostfile": "--format slurm",
    "plan --contiguous": "a plan is compared with Slurm's own choice",
    "plan --baseline": "nidmap compare --baseline S compares plans with another strategy",
    "plan --mapping-limit": "nidmap order --mapping-limit N writes the order within another limit",
    "ab --mapping-limit": "nidmap order --mapping-limit N -o FILE writes it for --order FILE",
    "ab --higher-is-better": "--unit ns/day marks it as a rate",
    "ab --seed": "the order of launches has a fixed seed",
    "calibrate --seed": "the choice of nodes has a fixed seed",
    "web serve --streams": "up to 256 viewers get a stream, all others poll",
    "minicray up --no-slurm": "--topology off",
    "web serve --no-token": "--token none",
    "web serve --plans": "the number of parallel calculations depends on the cores",
    "web export --width": "a picture is 1600 pixels wide; .svg has any size",
    "order --relax": "--strategy hierarchical:relax",
    "pattern show": "nidmap record show",
    "preload build": "nidmap record build",
    "nidmap.record": "nidmap record -- mpiexec -n 8 python app.py does it",
}
for _name in ("alltoall", "stencil", "sort", "isx", "fft", "contention"):
    GONE[f"bench {_name} --seed"] = "the data have a fixed seed"
    GONE[f"bench {_name} --warmup"] = "one warm-up repetition comes first"
for _name in (
    "site list", "site show", "site check", "machine show", "machine check", "nodes fold",
    "nodes expand", "nodes free", "nodes info", "predict", "score",
):  # fmt: skip
    for _option in ("-o", "--output"):
        GONE[f"{_name} {_option}"] = "redirect the output with > FILE"
for _command in _PREDICTING:
    GONE[f"{_command} --grid"] = "--pattern stencil:GRID"
for _command in ("plan", "run", "ab"):
    GONE[f"{_command} --order-format"] = (
        "the file's name sets the format: MPICH_RANK_ORDER, FILE.slots, FILE.hosts …"
    )
for _command in (
    *_PREDICTING, "machine show", "machine export", "machine check", "nodes expand", "nodes fold",
    "nodes free", "nodes info", "bench stencil", "bench fft", "bench contention", "calibrate",
    "slurm install", "minicray up", "web export", "web serve",
):  # fmt: skip
    GONE[f"{_command} --links-down"] = "add -m links-down:FILE"
    GONE[f"{_command} --prefer"] = "add -m prefer:last"
for _name in _DUMPS:
    GONE[f"machine export --format {_name}"] = (
        "dumps are read, not written; topology-conf and topology-yaml are for Slurm, "
        "node-link, graphml and csv for other programs"
    )
for _command in _PREDICTING:
    GONE[f"{_command} --first-contact"] = "ranks are assumed to be connected"
    for _name, _value in _FIGURES.items():
        GONE[f"{_command} --{_name}"] = f"it belongs to the machine: -m MACHINE,{_name}={_value}"


def replacement(argv: Sequence[str]) -> str:
    """Return the line for a command line that names something which left, '' for any other.

    Parameters
    ----------
    argv : sequence of str
        The words behind ``nidmap``; those behind ``--`` are the user's own program's.

    Examples
    --------
    >>> replacement(["machine", "export", "-m", "tara", "--format=sls"]).partition(";")[0]
    'machine export --format sls was removed: dumps are read, not written'
    >>> replacement(["machine", "export", "-m", "tara", "--format", "csv"])
    ''
    """
    typed = list(argv[: argv.index("--")] if "--" in argv else argv)
    words = [
        part for word in typed for part in (word.split("=", 1) if word[:2] == "--" else [word])
    ]
    for old, instead in GONE.items():
        command, dash, option = old.partition(" -")
        path, rest = command.split(), f"-{option}".split() if dash else []
        behind = words[len(path) :]
        starts = range(len(behind) - len(rest) + 1)
        if words[: len(path)] == path and any(behind[i : i + len(rest)] == rest for i in starts):
            return f"{old} was removed: {instead}"
    return ""
