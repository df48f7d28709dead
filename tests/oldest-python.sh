#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run the tests of the core on Python 3.10, the oldest that nidmap promises.
#
# An interpreter is looked for as python3.10 on PATH and among pyenv's; where there is
# none this says so and ends well: tests/house/test_syntax.py still checks the syntax.
#
# Usage: sh tests/oldest-python.sh [PYTEST ARGUMENTS]
set -eu
cd "$(dirname "$0")/.."

python=
for candidate in python3.10 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.10.*/bin/python3.10; do
    if "$candidate" -c '' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "no Python 3.10 here: only its syntax is checked (tests/house/test_syntax.py)" >&2
    exit 0
fi

venv=.venv-oldest
if [ ! -e "$venv/.done" ] || [ pyproject.toml -nt "$venv/.done" ]; then
    PYTHON=$python sh tests/install.sh "$venv" --editable ".[tables,graphs]" \
        'pytest>=8' 'pytest-timeout>=2.3' 'hypothesis>=6.100'
    touch "$venv/.done"
fi
# What an old interpreter lacks shows at once: a sample of every format is read, every planner
# chooses, every format is written, with few examples of each property; the rest is tested by `unit`.
[ $# -gt 0 ] || set -- tests/placement/names tests/placement/readers/test_samples.py \
    tests/placement/planners/test_contract.py tests/commands/test_plan_formats.py \
    tests/rankmap/emit tests/rankmap/pattern/test_pattern.py -m 'not slurm and not mpi' -k 'not 256_mib and not bomb and not damaged and not cut_short and not any_bytes and not broken_files and not all_free_nodes'
export NIDMAP_HYPOTHESIS="${NIDMAP_HYPOTHESIS:-quick}"
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
