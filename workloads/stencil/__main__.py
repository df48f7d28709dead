"""``mpiexec -n 4 python -m workloads.stencil``: the same as ``nidmap bench stencil``."""

from workloads.launched import program

if __name__ == "__main__":
    program("stencil")
