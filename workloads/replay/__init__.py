# SPDX-License-Identifier: Apache-2.0
"""The whole site replayed: what would happen to everybody if all jobs were placed so?"""
