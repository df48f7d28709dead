# SPDX-License-Identifier: Apache-2.0
"""How the user's guide is built (``make docs``)."""

import nidmap

project = "nidmap"
author = "The nidmap developers"
release = nidmap.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
html_theme = "furo"
html_title = "nidmap"
exclude_patterns: list[str] = []
autodoc_typehints = "none"  # the docstrings state types, shapes and units
napoleon_numpy_docstring = True
myst_heading_anchors = 3
# Attributes of our dataclasses share names with attributes of others (`count`): a
# reference inside a type description then has two targets, either of them right.
suppress_warnings = ["ref.python"]
