#!/bin/sh
# Run all tests; those that failed once more, alone, when nothing else runs.
#
# Hundreds of tests start daemons, launchers and browsers on a machine that does
# other things. A test that fails both times has found a fault. One that passes
# alone is named, so that what it leaves to chance is mended.
#
# Usage: sh tests/run-units.sh PYTHON [PYTEST ARGUMENTS]
set -u
python=$1
shift
unset PYTHONDONTWRITEBYTECODE # hundreds of commands are started: none should compile itself

"$python" -m pytest "$@" && exit 0
status=$?
[ "$status" -eq 1 ] || exit "$status" # interrupted, or not even collected
echo "once more, alone, what failed:" >&2
"$python" -m pytest -v --last-failed --last-failed-no-failures none || exit
echo "passed alone, failed beside others: the tests named above" >&2
