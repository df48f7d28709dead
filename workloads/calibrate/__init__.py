# SPDX-License-Identifier: Apache-2.0
"""``nidmap calibrate``: measures a machine's constants on some of its nodes."""
