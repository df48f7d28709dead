# SPDX-License-Identifier: Apache-2.0
"""Run the fuzzer: every target in turn, each in a process with limits on memory and time."""

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import targets

#: Bytes that a process may take beyond what it has when it begins.
MEMORY = 2**30

#: Cases of one target before the next has its turn.
TURN = 250


class TooSlowError(BaseException):
    """A case took longer than it may; nothing of ours catches it."""


def main():
    """Fuzz until the time is over; leave with 1 where something was found."""
    options = _options()
    chosen = {
        name: target
        for name, target in targets().items()
        if not options.only or options.only in name
    }
    if options.case is not None:
        for name, target in chosen.items():
            print(name, input_of(name, target, options.case))
            print(_asked(name, target, options.case, options.patience) or "as it should be")
        return 0
    finds, counts, first = Counter(), Counter(), options.first
    end = time.monotonic() + options.seconds
    while chosen and first < options.first + options.cases and time.monotonic() < end:
        many = min(TURN, options.first + options.cases - first)
        for name, target in chosen.items():
            cases = range(first, first + many)
            for case, fault in turn(name, target, cases, end, options.patience):
                finds[name] += 1
                print(f"{name} --case {case}: {fault}", flush=True)
            counts[name] += many
        first += many
    print(f"{sum(counts.values())} cases of {len(counts)} targets, {sum(finds.values())} finds")
    return 1 if finds else 0


def _options():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cases", type=int, default=10**9, help="of every target")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", default="", help="targets with this in their name")
    parser.add_argument("--patience", type=float, default=20.0, help="processor seconds of a case")
    parser.add_argument("--case", type=int, help="run this case alone and show its input")
    return parser.parse_args()


def turn(name, target, cases, end, patience):
    """Run cases in a process of their own; yield those that went wrong, with what did."""
    cases = list(cases)
    while cases:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _run(name, target, cases, end, patience, writing)
        os.close(writing)
        with open(reading) as lines:
            for line in lines:
                number, _, fault = line.rstrip("\n").partition(" ")
                cases = [case for case in cases if case > int(number)]
                if fault:
                    yield int(number), fault
        _, status = os.waitpid(child, 0)
        if status and cases:  # what it was at ended it
            yield cases[0], f"its process ended with {os.waitstatus_to_exitcode(status)}"
            cases = cases[1:]
        else:
            return


def _run(name, target, cases, end, patience, writing):
    """Run cases and write a line for each; never returns."""
    taken = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in cases:
        if time.monotonic() > end:
            break
        fault = _asked(name, target, case, patience)
        os.write(writing, f"{case} {ascii(fault)[1:-1]}\n".encode())
    os._exit(0)


def input_of(name, target, case):
    """Return the input of a case: the same one always."""
    return mutated(random.Random(f"{name} {case}"), target.seeds)


def _asked(name, target, case, patience):
    """Run one case; return what is wrong."""

    def too_slow(number, frame):
        raise TooSlowError

    signal.signal(signal.SIGPROF, too_slow)
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        signal.setitimer(signal.ITIMER_PROF, patience)
        try:
            return target.ask(input_of(name, target, case), folder)
        except TooSlowError:
            return f"takes more than {time.process_time() - begun:.0f} s of a processor"
        except BaseException as error:
            return f"raised {type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.chdir("/")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does
    sys.exit(main())
