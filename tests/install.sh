#!/bin/sh
# Install packages into an environment, in the same way for all that `make test` needs.
#
# uv downloads and unpacks side by side, and shares what several environments need; where it
# cannot be had, or does not find what pip's own settings do, pip does it. Neither compiles bytecode:
# that is made of what is imported, and of everything it takes as long as the rest.
#
# Usage: sh tests/install.sh ENVIRONMENT PACKAGES OR OPTIONS
set -u
python=$1/bin/python
shift

with_pip() {
    "$python" -m pip --disable-pip-version-check install --quiet --no-compile "$@"
}

with_pip uv 2>/dev/null && "$python" -m uv pip install --quiet --python "$python" "$@" && exit 0
with_pip "$@"
