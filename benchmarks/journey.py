# SPDX-License-Identifier: Apache-2.0
"""What nodes and orders gain for any kind of program over Slurm's choice.

``python -m benchmarks.journey NAME -N 12 --pattern measured:app.npz --time-regex RE -- srun
--mpi=pmix -n 12 ./app``

Run it where jobs are started (``nidmap minicray run -- python -m benchmarks.journey …``). The
arms of ``reports/2026-11-programs.md``:
*default* is the program on the nodes that Slurm gives, *nodes* on those
of ``nidmap plan --from idle`` with its ranks as they come, *order* is Slurm's nodes with ``nidmap
order``, *both* is what ``plan --order-out`` wrote. What is predicted is written to
``NAME.state.json`` before the first launch; every launch is a job of its own (``salloc -w``), a
block each arm once in random turns, and its figure goes to ``NAME.samples``. Begun again with the
same name it goes on with more blocks, which ``--limit`` cuts into stretches. ``--table`` prints
rows of that page from what several names have.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from nidmap import load_machine
from nidmap.placement.nodelist import NodeList
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.workloads.ab.statistics import FEWEST, mean_interval

#: What is compared with ``default``.
ARMS = ("nodes", "order", "both")

#: Attempts at a launch.
TRIES = 3

#: How near the median may come to a range that is said to cover it.
NEAR = 0.005


def output(*words):
    """Return what a command prints; exit if it fails."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def prepare_arms(asked):
    """Return each arm's nodes, order and prediction, which are stored the first time."""
    state = Path(f"{asked.name}.state.json")
    if state.exists():
        return json.loads(state.read_text())
    given = output(
        "salloc", "-Q", "-N", asked.nodes, "--exclusive", "sh", "-c", 'echo "$SLURM_JOB_NODELIST"'
    ).strip()  # fmt: skip
    how = ["--ppn", "1", "--pattern", asked.pattern]
    how += ["--bytes", asked.bytes] if asked.bytes else []
    order, both = f"{asked.name}.order.json", f"{asked.name}.both.json"
    output("nidmap", "order", "--nodes", given, *how, "-o", order)
    output(
        "nidmap", "plan", "--from", "idle", "-N", asked.nodes, *how, "--order-out", both, "--json"
    )
    found = {"given": given, "orders": {"order": order, "both": both}}
    found["plan"] = ",".join(json.loads(Path(both).read_text())["nodes"])
    found["predicted"] = predict_gains(asked, found)
    found["machine"], found["pattern"] = os.environ["NIDMAP_MACHINE"], asked.pattern
    state.write_text(json.dumps(found))
    print(json.dumps(found, indent=1), flush=True)
    return found


def predict_gains(asked, found):
    """Return (low, likely, high) of each arm against the default."""
    machine = load_machine(*os.environ["NIDMAP_MACHINE"].split())
    size = float(asked.bytes) if asked.bytes else None
    model = Predictor(machine, Job(asked.pattern, 1, size, algorithm=""))
    place = {name: row for row, name in enumerate(machine.names.tolist())}

    def placement_of(nodes, path=None):
        if path is None:
            listed = sorted(NodeList.parse(nodes, "-w"))
            return model.place(np.array([place[name] for name in listed]))
        order = json.loads(Path(path).read_text())
        rows, slots = np.array([place[name] for name in order["nodes"]]), order["slots"]
        return model.place(rows, None if slots is None else np.array(slots))

    gains = Gains(model, placement_of(found["given"]))
    where = {name: placement_of("", path) for name, path in found["orders"].items()}
    where["nodes"] = placement_of(found["plan"])
    return {name: gains.of(where[name])[:3] for name in ARMS}


def arms_of(found, program):
    """Return (nodes, command) of each arm, without duplicates of other arms."""
    run = lambda arm: ["nidmap", "run", "--order", found["orders"][arm], "--", *program]  # noqa: E731
    arms = {"default": (found["given"], program), "order": (found["given"], run("order"))}
    if set(NodeList.parse(found["plan"], "-w")) != set(NodeList.parse(found["given"], "-w")):
        arms["nodes"] = found["plan"], program
        arms["both"] = found["plan"], run("both")
    return arms


def time_launch(asked, nodes, command):
    """Return one launch's seconds, or the inverse of its rate; None if it failed."""
    words = ["salloc", "-Q", "-N", asked.nodes, "--exclusive", "-w", nodes, *command]
    job = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = job.communicate(timeout=asked.timeout)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGTERM)  # salloc gives the job back, which ends its ranks
        out, err = job.communicate()
    text = out + err + (Path(asked.time_file).read_text() if asked.time_file else "")
    found = re.findall(asked.time_regex, text)
    if job.returncode or not found:
        print(f"a launch failed with code {job.returncode}: {text[-600:]}", flush=True)
        return None
    return 1 / float(found[-1]) if asked.higher_is_better else float(found[-1])


def measure_arms(asked, arms):
    """Launch blocks in turn and keep every result."""
    begun, longest, rng = time.time(), 0.0, random.Random()
    for block in range(asked.blocks):
        turns, start = list(arms), time.time()
        rng.shuffle(turns)
        for arm in turns:
            figures = (time_launch(asked, *arms[arm]) for _ in range(TRIES))
            took = next((figure for figure in figures if figure), None)
            if took is None:
                return
            line = {"block": f"{begun}-{block}", "arm": arm, "s": took}
            with Path(f"{asked.name}.samples").open("a") as samples:
                samples.write(json.dumps(line) + "\n")
            print(f"{block} {arm} {took:.4g}", flush=True)
        longest = max(longest, time.time() - start)
        if time.time() - begun + longest > asked.limit:
            return


def rows_of(name):
    """Return a name's lines for the page's table, and (covered, arms)."""
    found = json.loads(Path(f"{name}.state.json").read_text())
    blocks = {}
    for line in Path(f"{name}.samples").read_text().splitlines():
        sample = json.loads(line)
        blocks.setdefault(sample["block"], {})[sample["arm"]] = sample["s"]
    names = [arm for arm in ARMS if any(arm in block for block in blocks.values())]
    whole = [block for block in blocks.values() if {"default", *names} <= block.keys()]
    lines, covered = [], 0
    for arm in names if len(whole) >= FEWEST else ():
        ratios = np.log([block["default"] / block[arm] for block in whole])
        middle, ends = float(np.exp(median(ratios))), mean_interval(ratios)
        low, likely, high = found["predicted"][arm]
        inside = low * (1 - NEAR) <= middle <= high * (1 + NEAR)
        reaches = ends.low <= high and ends.high >= low
        covered += inside
        word = "yes" if inside else "nearly: the interval reaches in" if reaches else "no"
        first = "" if lines else f"{Path(name).name}, {len(whole)} blocks"
        lines.append(
            f"| {first} | {arm} | {low:.2f} … {likely:.2f} … {high:.2f} | {middle:.2f} |"
            f" {ends.low:.2f} … {ends.high:.2f} | {word} |"
        )
    return lines, (covered, len(lines))


def main():
    """Measure one program, or print the table of several."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.journey", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("name", nargs="+", help="of the files that are written")
    parser.add_argument("-N", "--nodes", help="nodes, one rank each")
    parser.add_argument("--pattern")
    parser.add_argument("--bytes")
    parser.add_argument("--time-regex", default="took ([0-9.]+)")
    parser.add_argument("--time-file", help="where the program writes its timer")
    parser.add_argument("--higher-is-better", action="store_true")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--limit", type=float, default=220, help="seconds of a stretch (220)")
    parser.add_argument(
        "--timeout", type=float, default=100, help="seconds per launch; default: 100"
    )
    parser.add_argument("--table", action="store_true", help="print what there is")
    command = sys.argv[1:]
    program = command[command.index("--") + 1 :] if "--" in command else []
    asked = parser.parse_args(command[: len(command) - len(program) - bool(program)])
    if asked.table:
        every = [rows_of(name) for name in asked.name]
        print("\n".join(line for lines, _ in every for line in lines))
        print(f"{sum(c for _, (c, _) in every)} of {sum(n for _, (_, n) in every)} covered")
        return
    (asked.name,) = asked.name
    measure_arms(asked, arms_of(prepare_arms(asked), program))


if __name__ == "__main__":
    main()
