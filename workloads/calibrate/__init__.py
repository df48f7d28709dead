"""The constants of a machine, measured on some of its nodes: ``nidmap calibrate``."""
