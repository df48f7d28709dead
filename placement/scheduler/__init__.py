# SPDX-License-Identifier: Apache-2.0
"""What a machine's scheduler does: which nodes it calls free, and which it would choose."""
