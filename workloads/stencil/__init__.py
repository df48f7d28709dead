"""Halo exchange with six neighbours, latency by network level, and local copies, as in DASH.

``nidmap bench stencil`` measures all three; `workloads.stencil.kinds.Blocks`
is the distributed array whose regions are copied.
"""
