"""What is inside a node: cores by cache, NUMA domain and socket; GPUs and NICs beside them."""
