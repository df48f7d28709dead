"""What the scheduler of a machine does: which nodes it calls free, and which it would choose."""
