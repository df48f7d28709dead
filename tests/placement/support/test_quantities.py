# SPDX-License-Identifier: Apache-2.0
"""Times, sizes, rates and counts in readable form."""

from nidmap.placement.support.quantities import (
    counted,
    exact_size,
    plural,
    rate_text,
    size_text,
    size_unit,
    time_unit,
    times_text,
    unit_name,
)


def test_times_text():
    assert times_text(0.00095, 0.0012) == "0.95 ms against 1.2 ms"
    assert times_text(0.0, 0.0) == "0 s against 0 s"


def test_size_text():
    assert size_text(1e6) == "1 MB"
    assert size_text(1536) == "1.54 kB"
    assert size_text(1536, base=1024) == "1.5 KiB"
    assert size_text(12) == "12 B"


def test_rate_text():
    assert rate_text(2.5e9) == "2.5 GB/s"
    assert rate_text(1470.0) == "1.47 kB/s"
    assert rate_text(0) == "0 B/s"


def test_exact_size():
    assert exact_size(8) == "8 B"
    assert exact_size(65536) == "64 KiB"
    assert exact_size(1500) == "1500 B"
    assert exact_size(500_000_000_000) == "500 GB"


def test_counted():
    assert counted(1, "group") == "1 group"
    assert counted(3, "chassis") == "3 chassis"
    assert counted(2, "leaf") == "2 leaf switches"
    assert counted(3, "level1") == "3 level-1 switches"
    assert counted(2, "switch") == "2 switches"


def test_plural():
    assert [plural(word) for word in ("node", "switch", "chassis", "leaf", "x", "level1")] == [
        "nodes",
        "switches",
        "chassis",
        "leaves",
        "x",
        "level1",
    ]


def test_unit_name():
    assert unit_name("level1") == "level-1 switch"
    assert unit_name("leaf") == "leaf switch"
    assert unit_name("group") == "group"


def test_time_unit():
    assert time_unit(0.25) == ("ms", 1000.0)
    assert time_unit(0) == ("s", 1.0)


def test_size_unit():
    assert size_unit(4e9) == ("GB", 1e-09)
    assert size_unit(4096, base=1024) == ("KiB", 0.0009765625)
