# SPDX-License-Identifier: Apache-2.0
"""Contention in a switched network: all-to-alls of large blocks, within and across leaf modules.

Source: Mistry, Ramsey, Wiley, Yanchuck, Huang, Gobbert, Mineo, Mountain,
"Contention of Communications in Switched Networks with Applications to
Parallel Sorting", HPCF-2013-13 (the cluster tara).
"""
