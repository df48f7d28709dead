# SPDX-License-Identifier: Apache-2.0
"""The NID marker: a machine, its jobs and a plan in a web page."""
