# SPDX-License-Identifier: Apache-2.0
"""What a recorded program does: the patterns in it, its steps, both in words."""
