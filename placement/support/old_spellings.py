"""What left nidmap, and what a user who names it is told: for one release."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["GONE", "replacement"]

_DUMPS = (
    *("xtprocadmin", "xtdb2proc", "meshcoords", "torus-coordinates", "system-map"),
    *("rtr-aries", "rtr-gemini", "sls", "scontrol-topology", "sinfo"),
    *("ibnetdiscover", "ibnetdiscover-ports"),
)

_JOB = "nidmap run --verify asks the ranks where they are, nidmap web serve shows a job's nodes"

#: A command, or what of it has left, as it was typed -> what to use instead.
GONE: dict[str, str] = {
    f"machine export --format {name}": (
        "dumps are read, not written; topology-conf and topology-yaml are what Slurm reads, "
        "node-link, graphml and csv what other programs read"
    )
    for name in _DUMPS
} | {
    "site check --against": "nidmap machine check -m SITE -m DUMP lists what contradicts",
    "bench ab": "nidmap ab … -- srun -n 64 nidmap bench fft … measures arms in turn",
    "bench report": "-o FILE.csv and FILE.svg of bench and ab are its table and its picture",
    "ab --turns": "each block has every arm once, at random",
    "ab --control": "the interval says what the noise alone does",
    "ab --retries": "a launch that fails is begun anew twice",
    "ab --show": "the program's output is in the folder that --output-dir names",
    "score --job": _JOB,
    "score --ask": _JOB,
    "score --order-dir": _JOB,
    "plan --format affinity": "nodelist, lines and json name the nodes for any scheduler",
    "order --format mpijob": "hydra, openmpi and json name the node of each rank",
    "order --format kubernetes": "json has the nodes and the slot of each rank",
    "nidmap.record": "nidmap record -- mpiexec -n 8 python app.py does it",
}


def replacement(argv: Sequence[str]) -> str:
    """Return the line for a command line that names something which left, '' for any other.

    Parameters
    ----------
    argv : sequence of str
        The words behind ``nidmap``; those behind ``--`` are the user's own program's.

    Examples
    --------
    >>> replacement(["machine", "export", "-m", "tara", "--format=sls"]).partition(";")[0]
    'machine export --format sls is gone: dumps are read, not written'
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
            return f"{old} is gone: {instead}"
    return ""
