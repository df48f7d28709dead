# SPDX-License-Identifier: Apache-2.0
"""Behind a proxy: paths, redirect and cookie under a prefix; tokens that are kept, or old."""

import contextlib
import os
from dataclasses import replace

import pytest

from nidmap.placement.errors import UsageError
from nidmap.web.commands import _path_of
from nidmap.web.guard import token_in
from nidmap.web.page import served_files
from tests.web.browser import Opened, new_context
from tests.web.serving import running

pytest_plugins = ("tests.web.browser",)

TOKEN = "a-token-of-these-tests"  # nothing that is secret

#: The page's script.
SCRIPT = f"/static/{next(iter(served_files()))}"


@pytest.fixture(scope="module")
def behind(small):
    """A server under /nidmap/."""
    with running(small, token=TOKEN, prefix="/nidmap/") as found:
        yield found


@pytest.mark.parametrize("start", ["/nidmap", ""])
def test_a_proxy_may_leave_the_prefix_or_take_it_off(behind, start):
    for path in ("/", "/api/v1/state", "/api/v1/machine", SCRIPT):
        assert behind.ask(start + path).status == 200
    assert behind.ask(f"{start}/api/v1/describe", body={"nodes": "0-3"}).json["count"] == 4


def test_the_token_leads_to_where_the_proxy_has_it(behind):
    bare = {"Authorization": None}
    first = behind.ask(f"/nidmap?token={TOKEN}", headers=bare)
    assert (first.status, first.headers["location"]) == (308, f"nidmap/?token={TOKEN}")
    reply = behind.ask(f"/nidmap/?token={TOKEN}", headers=bare)
    assert (reply.status, reply.headers["location"]) == (303, "./")
    assert "Path=/nidmap/;" in reply.headers["set-cookie"]
    assert behind.ask("/other/", headers=bare).status == 401


def test_nothing_on_the_page_asks_outside_its_prefix(behind, browser):
    with contextlib.closing(new_context(browser)) as context:
        page = Opened(context.new_page(), f"{behind.url}/nidmap")
        page.go(f"?token={TOKEN}#m=A:0:0-15")
        page.sentence("16 nodes in")
        page.page.click("#help-open")
        page.page.click("#curl summary")
        assert f"'{page.url}/api/v1/machine'" in page.text("#curl-lines")
        assert (page.faults, page.outside) == ([], [])


def test_a_tab_whose_token_is_old_says_so_and_opens_the_new_server(behind, browser):
    with contextlib.closing(new_context(browser)) as context:
        page = Opened(context.new_page(), f"{behind.url}/nidmap").go(f"?token={TOKEN}#m=A:0:0-15")
        page.sentence("16 nodes in")
        before = behind.service.guard
        behind.service.guard = replace(before, token="the-one-after-a-restart")
        try:
            page.page.fill("#paste-text", "20-23")
            page.page.click("#paste button[type=submit]")
            page.page.wait_for_selector("#token-old:not([hidden])")
            url = f"{page.url}/?token={behind.service.guard.token}"
            page.page.fill("#token-new", url)
            page.page.click("#token-old button")
            page.page.wait_for_selector("#token-old", state="hidden")
            page.settle()
            page.sentence("16 nodes in")
            assert page.marks() == {"A": 16}
        finally:
            behind.service.guard = before


@pytest.mark.parametrize("value", ["nidmap", "/nidmap", "nidmap/", "/nidmap/", "/nid%6dap/"])
def test_a_prefix_may_be_written_as_one_likes(value):
    assert _path_of(value) == "/nidmap/"


@pytest.mark.parametrize("value", ["/a b/", "/../x/", "http://x/", "/a?b/"])
def test_what_is_no_prefix_is_refused(value):
    with pytest.raises(UsageError, match="is not a path"):
        _path_of(value)


def test_a_token_is_made_once_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "token"
    token = token_in(str(path))
    assert token_in(str(path)) == token
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["token"]


def test_a_token_that_others_may_read_or_that_is_none_is_refused(tmp_path):
    path = tmp_path / "token"
    path.write_text("short\n")
    path.chmod(0o600)
    with pytest.raises(UsageError, match="no token"):
        token_in(str(path))
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others can read it"):
        token_in(str(path))
