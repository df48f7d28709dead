# SPDX-License-Identifier: Apache-2.0
"""FFTs in two and three dimensions on slabs and pencils, like FFTK."""
