# SPDX-License-Identifier: Apache-2.0
"""Process grids: their extents, boxes in them, and grids laid on tori."""
