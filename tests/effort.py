# SPDX-License-Identifier: Apache-2.0
"""How many examples a costly property gets, as a share of what the profile gives every other."""

from typing import Any

from hypothesis import settings


def examples(usual: int, **more: Any) -> settings:
    """Return settings with `usual` examples where the profile's own number is 100.

    More in the profiles `long` and `board`, fewer in `ci` and `quick`: at least 2.
    """
    return settings(max_examples=max(2, usual * settings().max_examples // 100), **more)
