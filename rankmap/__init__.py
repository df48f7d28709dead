"""Rank orders: patterns, orders, emitters and launchers."""
