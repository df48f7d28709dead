# SPDX-License-Identifier: Apache-2.0
"""The commands of this room: ``order``, ``run``, ``score``, ``predict``, ``compare``."""
