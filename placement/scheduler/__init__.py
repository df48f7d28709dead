# SPDX-License-Identifier: Apache-2.0
"""What the scheduler of a machine does: which nodes it calls free, and which it would choose."""
