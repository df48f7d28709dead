# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of all that is read: whatever comes in, the answer is one line and the right exit code.

python -m tests.fuzz --seconds 600
python -m tests.fuzz --only order --case 4711     # one case again, with its input
"""
