#!/bin/sh
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
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --editable ".[tables,graphs]" \
        'pytest>=8' 'pytest-xdist>=3.5' 'pytest-timeout>=2.3' 'hypothesis>=6.100'
    touch "$venv/.done"
fi
[ $# -gt 0 ] || set -- tests/house tests/commands tests/placement/lists tests/placement/readers \
    tests/placement/planners tests/rankmap/pattern --ignore=tests/commands/test_examples.py \
    --ignore=tests/commands/test_headers_run.py # these want every extra, and Slurm at length
# What an old interpreter lacks shows at once: few examples of each property are enough.
export NIDMAP_HYPOTHESIS="${NIDMAP_HYPOTHESIS:-quick}"
exec "$venv/bin/python" -m pytest -q -n auto -p no:cacheprovider "$@"
