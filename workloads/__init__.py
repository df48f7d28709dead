"""Workloads that measure what a placement buys."""
