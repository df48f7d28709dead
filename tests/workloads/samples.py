# SPDX-License-Identifier: Apache-2.0
"""Files of samples, as a user reads them."""

import json

import pandas as pd


def load(path):
    """Return the header and a table of the samples."""
    with open(path, encoding="utf-8") as stream:
        mark, schema, header = stream.readline().split(" ", 2)
        assert (mark, schema) == ("#", "nidmap.samples/1")
        empty = not stream.readline().strip()
    return json.loads(header), pd.DataFrame() if empty else pd.read_csv(path, skiprows=1)
