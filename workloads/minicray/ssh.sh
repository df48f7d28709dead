#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a launcher takes for ssh.
while :; do case "$1" in -x|-q|-n) shift;; -*) shift 2;; *) break;; esac; done
node=$1
shift
exec "${0%/*}/on" "$node" sh -c "$*"
