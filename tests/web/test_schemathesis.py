# SPDX-License-Identifier: Apache-2.0
"""Schemathesis asks the API what its own description allows, and what it does not."""

import importlib.util
import subprocess
import sys

import pytest

from tests.web.serving import running


@pytest.mark.skipif(
    importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed"
)
def test_the_api_keeps_to_its_description(small, tmp_path):
    with running(small, token="t-1", seconds=20.0) as site:
        done = subprocess.run(
            [
                sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
                "run", f"{site.url}/openapi.json", "-H", f"Authorization: Bearer {site.token}",
                "-n", "4", "--seed", "1", "--phases", "fuzzing",
                "--no-color", "--request-timeout", "20",
            ],
            capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
        )  # fmt: skip
        said = done.stdout[-3000:] + done.stderr[-1000:]
        assert done.returncode == 0, said
        assert "17 passed" in said or "Tested: 17" in said
        assert site.ask("/api/v1/status").status == 200
