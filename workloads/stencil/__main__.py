"""``mpiexec -n 4 python -m workloads.stencil``: the same as ``nidmap bench stencil``."""

from nidmap import main

if __name__ == "__main__":
    main("bench", "stencil")
