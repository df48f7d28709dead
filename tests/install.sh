#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install packages into an environment, in the same way for all that `make test` needs.
#
# The uv of .venv makes the environment where it is not there, downloads and unpacks side by side,
# and shares what several environments need; where it cannot be had, or does not find what pip's
# own settings do, venv and pip do it. Neither compiles bytecode: that is made of what is imported,
# and of everything it takes as long as the rest.
#
# Usage: [PYTHON=python3] sh tests/install.sh ENVIRONMENT PACKAGES OR OPTIONS
set -u
PYTHON=$(command -v "${PYTHON:-python3}")
environment=$1
shift
uv=.venv/bin/uv

with_uv() {
    [ -e "$environment/bin/python" ] || $uv venv --quiet --python "$PYTHON" "$environment" || return
    $uv pip install --quiet --python "$environment/bin/python" "$@"
}

with_pip() {
    [ -e "$environment/bin/pip" ] || "$PYTHON" -m venv "$environment" || return
    "$environment/bin/pip" --disable-pip-version-check install --quiet --no-compile "$@"
}

[ -x $uv ] && with_uv "$@" && exit 0
with_pip "$@"
