"""Halo exchange with six neighbours, as in DASH."""
