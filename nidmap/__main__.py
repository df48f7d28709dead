"""``python -m nidmap``: the command line."""

from nidmap import main

main()
