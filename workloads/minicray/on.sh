#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program on a node: in its network, under its name, with temporary files of its own (PMIx
# has one directory a job step there, and takes one that is there for another's), with the /sys of
# its network, where UCX looks for devices, and memory that it shares with no other node.
home=${0%/*} node=$1
shift
exec nsenter --net=/run/netns/"$node" unshare --uts --ipc --mount sh -c '
hostname "$1" && mount --bind "$0/tmp.$1" "$0/tmp" && "$0/sys" && shift && exec "$@"' \
    "$home" "$node" "$@"
