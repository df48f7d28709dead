# SPDX-License-Identifier: Apache-2.0
"""Process grids: their extents, boxes within them, and embeddings into tori."""
