"""The library between a program and its MPI: its source in C, and how it is built."""
