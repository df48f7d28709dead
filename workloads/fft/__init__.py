"""FFTs in two and three dimensions on slabs and pencils, as FFTK does them."""
