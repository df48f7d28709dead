"""What every room needs and no field has a word for: arrays, child processes, quantities."""
