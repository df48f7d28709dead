# SPDX-License-Identifier: Apache-2.0
"""The constants of a machine, measured on some of its nodes: ``nidmap calibrate``."""
