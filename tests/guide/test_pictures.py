# SPDX-License-Identifier: Apache-2.0
"""The guide's pictures show the product as it is; where they do not, ``make pictures`` is due."""

import pytest

pytest.importorskip("PIL", reason="Pillow is not installed")

from PIL import Image, ImageChops

from tests.guide.pictures import IMAGES, SHOTS, drawn_plan, page_pictures

#: A pixel differs from this difference of a colour on: 128 colours are kept of a picture.
DIFFERENCE = 48

#: Share of the pixels that may differ: fonts are smoothed by the system, ages of states go on.
SHARE = 0.02


def changed(one, other):
    """Return the share of the pixels of two pictures that differ."""
    if one.size != other.size:
        return 1.0
    difference = ImageChops.difference(one.convert("RGB"), other.convert("RGB"))
    strongest = difference.split()
    most = ImageChops.lighter(ImageChops.lighter(*strongest[:2]), strongest[2])
    return sum(most.histogram()[DIFFERENCE:]) / (one.width * one.height)


def test_a_change_is_seen():
    plain = Image.new("RGB", (100, 100), "white")
    other = plain.copy()
    other.paste("black", (0, 0, 30, 10))
    assert changed(plain, plain) == 0
    assert changed(plain, other) == pytest.approx(0.03)
    assert changed(plain, plain.resize((50, 50))) == 1


@pytest.mark.slow
def test_pictures_of_the_page_are_as_the_page_is():
    found = {
        name: changed(Image.open(IMAGES / f"{name}.png"), picture)
        for name, picture in page_pictures()
        if name in SHOTS
    }
    assert max(found.values()) < SHARE, f"make pictures: the page has changed, by share: {found}"


@pytest.mark.slow
def test_the_picture_of_a_plan_is_as_it_is_drawn(tmp_path):
    kept = (IMAGES / "plan-lumi.svg").read_text()
    assert drawn_plan(tmp_path) == kept, "make pictures: what is drawn has changed"
