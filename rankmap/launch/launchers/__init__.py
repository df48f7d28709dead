"""The launchers, a module for each program: put one here and it is found.

A class names its options in an `OptionTable`, states what it is (`Launcher`'s attributes), and
its `launch` returns the words that start the ranks in order. A program whose ranks are started
differently for different MPI libraries has a class for each, all in the module's ``__all__``.
"""
