"""Node lists as text: what people paste, Slurm's host list language, and folding.

Text goes one way: `pasted` cuts what a command printed down to stretches of
host list text (`piece`), by `records` and `tables`; `expanding` makes names of
them. `folding` goes back. `placement.nodelist.NodeList` is what all use.
"""
