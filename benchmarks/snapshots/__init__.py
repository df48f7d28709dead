# SPDX-License-Identifier: Apache-2.0
"""Jobs side by side on mini-Crays against the times that a replay gives them."""
