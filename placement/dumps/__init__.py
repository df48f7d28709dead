# SPDX-License-Identifier: Apache-2.0
"""From the records of one or more dumps to a machine, and contradictions between dumps."""
