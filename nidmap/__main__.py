# SPDX-License-Identifier: Apache-2.0
"""``python -m nidmap``: the command line."""

from nidmap import main

main()
