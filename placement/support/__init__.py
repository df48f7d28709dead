# SPDX-License-Identifier: Apache-2.0
"""What every room needs and no field has a word for: arrays, child processes, quantities."""
