# SPDX-License-Identifier: Apache-2.0
"""The colours as people see them: no kind of colour blindness makes two of them one.

Colour blindness after Machado, Oliveira and Fernandes, "A physiologically-based model for
simulation of color vision deficiency", IEEE TVCG 15 (2009), severity 1.0; differences by CIEDE2000
(Sharma, Wu and Dalal, Color Res. Appl. 30, 2005), whose test data hold the formula here; contrast
by WCAG 2.2.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from nidmap import web

STATIC = Path(web.__file__).parent / "static"

VISIONS = {
    "all cones": np.eye(3),
    "no long ones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                     [-0.003882, -0.048116, 1.051998]],
    "no middle ones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                       [-0.011820, 0.042940, 0.968881]],
    "no short ones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                      [0.004733, 0.691367, 0.303900]],
}  # fmt: skip

TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                   [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip

#: CIEDE2000 that two meanings are apart at least (1 is just noticed side by side).
APART = 12

STATES = ("idle", "allocated", "down", "service", "other")


def linear(colour):
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def seen(colour, vision):
    """Return L*, a*, b* of a colour as a kind of eyes sees it."""
    light = np.clip(np.asarray(VISIONS[vision]) @ linear(colour), 0, 1)
    xyz = TO_XYZ @ light / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def difference(one, other):
    """Return CIEDE2000 of two colours in L*, a*, b*."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * np.sqrt(mean7 / (mean7 + 25.0**7))
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    mean_h = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    wide = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    t = sum(
        factor * np.cos(np.radians(times * mean_h + shift))
        for factor, times, shift in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63))
    )
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * (1 + t)
    swing = 30 * np.exp(-(((mean_h - 275) / 25) ** 2))
    chroma = 2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    cross = -np.sin(np.radians(2 * swing)) * chroma
    dl, dc, dh = (l2 - l1) / s_l, (c2 - c1) / s_c, wide / s_h
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + cross * dc * dh))


def contrast(one, other):
    """Return WCAG's contrast of two colours."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def page_theme(name):
    """Return the page's colours: its theme.js read as text."""
    text = (STATIC / "draw" / "theme.js").read_text()
    hues = re.search(rf"const HUES = .*?{name}: \[(.*?)\]", text, re.S).group(1)
    grounds = re.search(rf"const GROUNDS = .*?{name}: {{(.*?)}}", text, re.S).group(1)
    ramps = text[text.index("const RAMPS") :]
    return {
        "hues": re.findall(r"#[0-9a-f]{6}", hues),
        **dict(re.findall(r"(\w+): \"(#[0-9a-f]{6})\"", grounds)),
        **{
            f"ramp {ramp}": re.findall(
                r"#[0-9a-f]{6}",
                re.search(rf"{ramp}: {{.*?{name}: \[(.*?)\]", ramps, re.S).group(1),
            )
            for ramp in ("rank", "load")
        },
    }


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_ciede2000(one, other, apart):
    assert difference(one, other) == pytest.approx(apart, abs=5e-5)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("kind", ["hues", "states"])
def test_no_two_colours_look_alike(name, vision, kind):
    theme = page_theme(name)
    colours = theme["hues"] if kind == "hues" else [theme[state] for state in STATES]
    found = {
        pair: difference(*(seen(colour, vision) for colour in pair))
        for pair in itertools.combinations(colours, 2)
    }
    assert len(set(colours)) == (8 if kind == "hues" else 5)
    assert min(found.values()) >= APART, min(found, key=found.get)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_what_has_a_meaning_stands_out_from_its_ground(name):
    theme = page_theme(name)
    for colour in (*theme["hues"], *(theme[state] for state in STATES)):
        for ground in ("map", "box", "inner"):
            assert contrast(colour, theme[ground]) >= 3, (colour, ground)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("ramp", ["ramp rank", "ramp load"])
def test_ramps_rise_for_every_eye(name, vision, ramp):
    stops = [seen(colour, vision) for colour in page_theme(name)[ramp]]
    steps = np.diff([lightness for lightness, _, _ in stops])
    assert (steps > 2).all() or (steps < -2).all()
    assert difference(stops[0], stops[-1]) > 40
    assert min(difference(a, b) for a, b in itertools.pairwise(stops)) > 3


@pytest.mark.parametrize("name", [0, 1], ids=["light", "dark"])
def test_words_are_read_on_every_surface(name):
    style = (STATIC / "page.css").read_text()
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    colour = {key: both[name] for key, *both in pairs}
    for word in ("ink", "soft", "accent", "bad", "warn", "good"):
        for surface in ("page", "card", "map", "well"):
            assert contrast(colour[word], colour[surface]) >= 4.5, (word, surface)
    assert contrast(colour["bad"], colour["bad-wash"]) >= 4.5
    assert contrast(colour["on-accent"], colour["accent"]) >= 4.5
    for surface in ("page", "card", "map"):
        assert contrast(colour["edge"], colour[surface]) >= 3, "the border of a field"
