# SPDX-License-Identifier: Apache-2.0
"""Waiting in tests: for something to be so, never for a time to be over."""

import time

#: Seconds after which something hangs, however many other programs the machine runs.
HANGS = 600


def wait_until(condition, what="it", pause=0.02):
    """Wait until something is so, and return what the condition returned.

    One that starts a program has a longer pause: it is looked at every so many seconds.
    """
    ends = time.monotonic() + HANGS
    while not (found := condition()):
        if time.monotonic() > ends:
            raise AssertionError(f"{what} did not become so in {HANGS} s")
        time.sleep(pause)
    return found
