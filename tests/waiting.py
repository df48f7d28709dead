"""Waiting in tests: for something to be so, never for a time to be over."""

import time

#: Seconds after which something hangs, however many other programs the machine runs.
HANGS = 600


def wait_until(condition, what="it"):
    """Wait until something is so, and return what the condition returned."""
    ends = time.monotonic() + HANGS
    while not (found := condition()):
        if time.monotonic() > ends:
            raise AssertionError(f"{what} did not become so in {HANGS} s")
        time.sleep(0.02)
    return found
