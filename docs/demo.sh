#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job on a bundled machine: choose nodes, order ranks, show both.
set -e

run() {
    printf '\n$ nidmap %s\n' "$*"
    nidmap "$@"
}

run plan -m shaheen2 -N 216 --strategy blades --per-blade 1
run plan -m shaheen2 -N 216 --ppn 32 --strategy hilbert --format sbatch
run order -m shaheen2 --nodes 'nid[00024,00012,00016,00020]' --ppn 4 --pattern fft:4x4 \
    --strategy morton --format mpich
