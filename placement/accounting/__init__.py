"""Jobs that ran or run: what Slurm's and PBS's accounting say of them."""
