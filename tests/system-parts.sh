#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the system parts that tests with real components need.
#
# Where SYSTEM_PARTS=1 or CI is set they are installed, as root on Debian or Ubuntu, from
# the distribution, and named here. Elsewhere nothing is changed: the tests that need a
# missing part are skipped, and pytest ends with the list of them and the reason.
#
# Usage: sh tests/system-parts.sh [venv]    (venv: only what `python3 -m venv` needs, without
# which nothing can be run at all)
set -u

if [ "${1:-}" = venv ]; then
    packages="python3-venv"
else
    packages="slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurmdbd slurm-wlm-mysql-plugin
        mariadb-server-core libpmix2 iproute2 uidmap"
fi

present() {
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

packaged() {
    apt-cache show "$1" >/dev/null 2>&1
}

# Of browsers the one without windows, which takes half the processor time, where it is packaged.
shell=chromium-headless-shell
if [ "${1:-}" != venv ]; then
    if present chromium && ! packaged $shell; then
        packages="$packages chromium"
    else
        packages="$packages $shell"
    fi
fi

missing=
if command -v dpkg-query >/dev/null 2>&1; then
    for package in $packages; do
        present "$package" || missing="$missing $package"
    done
else
    echo "system parts: not Debian or Ubuntu, nothing installed (wanted: $packages)" >&2
    exit 0
fi
[ -z "$missing" ] && exit 0

case "${1:-}:${SYSTEM_PARTS:-${CI:-0}}" in
:0 | :false)
    echo "system parts: not installed:$missing (their tests will be skipped);" \
        "SYSTEM_PARTS=1 make test installs them, as root on Debian or Ubuntu" >&2
    exit 0
    ;;
esac

if [ "$(id -u)" != 0 ]; then
    echo "system parts: not root, so not installed:$missing (their tests will be skipped)" >&2
    exit 0
fi

echo "system parts: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# shellcheck disable=SC2086  # the list is meant to split
if {
    apt-get update
    packaged $shell || missing=$(printf '%s' "$missing" | sed "s/$shell/chromium/")
    apt-get install -y --no-install-recommends $missing
} >"$log" 2>&1; then
    rm -f "$log"
    exit 0
fi
tail -n 5 "$log" >&2
rm -f "$log"
echo "system parts: could not install$missing (their tests will be skipped)" >&2
exit 0
