# SPDX-License-Identifier: Apache-2.0
"""Nodes and networks: dumps, machines, planners, link loads.

Data flows one way: `readers` turn a dump into records, `assemble` turns
records into a `Machine`, `planners` choose nodes of it, `emit` writes them
down.
"""

__version__ = "0.1.0"
