# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: pasting, marking, searching, copying, links."""

import json
import random
import string
from xml.etree import ElementTree

import pytest

from tests.web.serving import HOSTILE

pytest_plugins = ("tests.web.browser",)


def rows_of(text, site):
    return site.post("resolve", text=text).json["rows"]


def test_the_machine_is_answered_before_anything_is_asked(opened, busy):
    page = opened(busy).go()
    words = page.sentence("6,174 compute nodes")
    assert "3 jobs" in words
    assert "370 service nodes" in words
    assert page.text("#live").startswith("from a file") or "ago" in page.text("#live")


def test_a_pasted_list_becomes_a_mark_with_its_sentence(opened, busy):
    page = opened(busy).go()
    page.paste("nid[00136-00191,00200-00255]\nc1-0c1s3n2 417-420")
    assert page.marks() == {"A": 117}
    assert page.page.input_value("#paste-text") == ""
    words = page.sentence("117 nodes in")
    assert busy.post("describe", nodes="136-191,200-255,270,417-420").json["sentence"] == words


def test_bad_tokens_are_named_where_they_stand(opened, busy):
    page = opened(busy).go()
    for number, (text, count, bad) in enumerate(
        [
            ("nid00136\nnid00137 nid99999\n  c0-0cXs1\n", 2, ["nid99999", "c0-0cXs1"]),
            ("nid00136,frontier00012", 1, ["frontier00012"]),
            ("n[0-3999999] nid00136", 1, ["n[0-3999999]"]),
        ]
    ):
        page.paste(text)
        page.until("w => document.querySelector('.bad-list')?.textContent.includes(w)", bad[0])
        assert list(page.marks().values())[number:] == [count]
        assert page.page.locator(".bad-list mark").all_inner_texts() == bad
        page.page.click(".bad-list li:last-child button")
        selected = page.page.evaluate(
            "() => { const f = document.getElementById('paste-text');"
            " return f.value.slice(f.selectionStart, f.selectionEnd); }"
        )
        assert selected == bad[-1]


def test_pasting_anywhere_marks(opened, busy):
    page = opened(busy).go()
    page.page.evaluate(
        "() => { const data = new DataTransfer(); data.setData('text', 'nid[00136-00139]');"
        " const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true});"
        " document.body.dispatchEvent(event); }"
    )
    page.until("() => document.querySelectorAll('#marks li').length === 1")
    assert page.marks() == {"A": 4}


def test_a_megabyte_of_junk_leaves_the_page_usable(opened, busy):
    page = opened(busy).go()
    letters = string.ascii_letters + string.digits + string.punctuation + " \n\t"
    junk = "".join(random.Random(7).choices(letters, k=1_000_000))
    page.page.evaluate("t => { document.getElementById('paste-text').value = t; }", junk)
    page.page.click("#paste button[type=submit]")
    page.until("() => document.querySelector('#paste-said .bad') !== null")
    page.paste("nid00136")
    assert list(page.marks().values())[-1] == 1


def test_hostile_names_are_text(opened, busy):
    page = opened(busy).go("#by=job")
    legend = page.page.locator("#legend .words").all_text_contents()
    assert any("<script>alert(1)</script>" in words for words in legend)
    page.page.fill("#search", "<script>")
    hit = page.page.locator("#search-hits li").first
    assert "<script>alert(1)</script>" in hit.text_content()
    page.page.keyboard.press("Enter")
    assert page.marks() == {"job 984712": 37}
    page.go("#m=" + HOSTILE.replace("#", "").replace("\n", " ").replace("&", "%26") + ":0:136-140")
    assert page.page.locator("script:not([src]):not([type])").count() == 0


def test_search_finds_nodes_jobs_users_and_cabinets(opened, busy):
    page = opened(busy).go()
    found = {}
    for words in ("270", "c1-0c1s3n2", "nid00270", "984711", "ada", "c3-1", "fft", "no such thing"):
        page.page.keyboard.press("/")
        page.page.fill("#search", words)
        found[words] = page.page.locator("#search-hits li").first.inner_text().split("\n")[:2]
        page.page.keyboard.press("Escape")
    for words in ("270", "c1-0c1s3n2", "nid00270"):
        assert found[words][1] == "nid00270 (c1-0c1s3n2)"
    assert found["984711"][1] == found["fft"][1] == "job 984711"
    assert found["ada"] == ["user", "ada"]
    assert found["c3-1"] == ["cabinet", "cabinet c3-1"]
    assert found["no such thing"] == ["nothing found"]
    page.page.keyboard.press("/")
    page.page.fill("#search", "ada")
    page.page.keyboard.press("Enter")
    jobs = busy.ask("/api/v1/state").json["jobs"]
    assert page.marks() == {"ada": sum(job["count"] for job in jobs if job["user"] == "ada")}


def test_a_click_marks_and_shift_click_marks_the_range(opened, busy):
    page = opened(busy).go()
    for name in ("nid00136", "nid00150"):
        page.page.fill("#search", name)
        page.page.keyboard.press("Enter")
        page.settle()
        x, y = page.where(name)
        page.page.click(
            "#map",
            position={"x": x, "y": y},
            modifiers=["Shift"] if name == "nid00150" else [],
        )
    assert page.marks() == {"A": 15}
    page.page.keyboard.press("Control+z")
    assert page.marks() == {"A": 1}


def test_a_label_marks_its_nodes_and_unmarks_them(opened, busy):
    page = opened(busy).go()
    label = page.page.locator(".box-label:not([hidden]):not([disabled])", has_text="g4").first
    label.click()
    machine = busy.ask("/api/v1/machine").json["nodes"]
    compute = machine["role"]["values"].index("compute")
    rows = busy.post("resolve", text="c8-0 c9-0").json["rows"]
    wanted = sum(machine["role"]["codes"][row] == compute for row in rows)
    assert page.marks()["A"] == wanted
    label.click()
    assert page.marks()["A"] == 0


def test_the_lasso_marks_the_compute_nodes_inside(opened, site):
    page = opened(site).go()
    box = page.page.locator("#map").bounding_box()
    page.page.click("#lasso")
    mouse = page.page.mouse
    corners = ((0.02, 0.02), (0.98, 0.02), (0.98, 0.88), (0.3, 0.98), (0.02, 0.85))
    mouse.move(box["x"] + box["width"] * 0.02, box["y"] + box["height"] * 0.02)
    mouse.down()
    for x, y in (*corners[1:], corners[0]):
        mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=4)
    mouse.up()
    assert 64 < page.marks()["A"] <= 128
    assert page.page.get_attribute("#lasso", "aria-pressed") == "false"


def test_several_marks_have_names_and_colours_of_their_own(opened, busy):
    page = opened(busy).go()
    for text in ("136-150", "200-210", "300-310"):
        page.paste(text)
    assert page.marks() == {"A": 15, "B": 11, "C": 11}
    colours = page.page.evaluate(
        "() => [...document.querySelectorAll('#marks canvas')].map(c =>"
        " [...c.getContext('2d').getImageData(9, 9, 1, 1).data].join())"
    )
    assert len(set(colours)) == 3
    page.page.click("#marks li:nth-child(3) .name")
    page.page.fill("#marks input", "my job")
    page.page.keyboard.press("Enter")
    assert page.marks() == {"A": 15, "B": 11, "my job": 11}
    for number in range(6):
        page.paste(str(400 + 2 * number))
    assert len(page.marks()) == 8
    page.until("() => document.getElementById('paste-said').textContent.includes('8 marks')")
    page.page.click("#marks li:nth-child(2) button[aria-label^=Remove]")
    assert "B" not in page.marks()


def test_a_mark_is_copied_back(opened, busy):
    page = opened(busy).go()
    page.paste("c1-0c1s3n2,nid[00136-00139],00200")
    rows = rows_of("c1-0c1s3n2,nid[00136-00139],00200", busy)
    asked = "#" + ",#".join(map(str, rows))
    for form in ("nodelist", "nids", "cnames", "hostfile", "sbatch"):
        wanted = busy.post("emit", nodes=asked, format=form, ppn=1).json["text"].strip()
        page.page.click(f"#copy button[data-format={form}]")
        page.until("w => document.querySelector('#copy textarea')?.value.trim() === w", wanted)
        text = page.page.evaluate("() => navigator.clipboard.readText()")
        assert text.strip() == wanted
        assert form == "sbatch" or rows_of(text, busy) == rows


def test_what_is_marked_is_saved_as_a_file(opened, busy):
    page = opened(busy).go("#by=job&c=dark")
    page.paste("nid[00136-00139]")
    page.page.click("#legend-head")
    page.paste("nid[00500-00501]")
    page.page.click("#save-open")
    page.page.check("#save input[value=html]")
    with page.page.expect_download() as caught:
        page.page.locator("#save").get_by_text("Save", exact=True).last.click()
    raw = caught.value.path().read_bytes()
    assert caught.value.suggested_filename == "shaheen2.html"
    line = page.text("#save-line")
    asked = json.loads(line.split("--json '")[1].split("' '")[0])
    assert [(m["name"], m["hue"]) for m in asked["marks"]] == [("B", 1), ("A", 0)]
    assert asked["colour"] == "job"
    same = busy.ask("/api/v1/export", body=asked).body
    assert [raw[:200], len(raw)] == [
        same[:200],
        len(same),
    ]  # it holds the time at which it was made
    assert b'"name":"B"' in raw
    assert "-o shaheen2.html" in line


def saved(page, form):
    """Return what the page saves in a form."""
    page.page.click("#save-open")
    page.page.check(f"#save input[value={form}]")
    with page.page.expect_download() as caught:
        page.page.locator("#save").get_by_text("Save", exact=True).last.click()
    page.page.keyboard.press("Escape")
    return caught.value.path()


def labels(page):
    return set(page.locator(".box-label:not([hidden])").all_text_contents())


def test_what_the_map_shows_is_saved_as_a_slide(opened, busy):
    page = opened(busy).go("#by=job&m=A:0:136-140&w=0,0,200,150")
    raw = saved(page, "png").read_bytes()
    sides = (int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big"))
    assert (raw[:4], sides) == (b"\x89PNG", (1920, 1080))
    near = saved(page, "svg").read_text()
    page.page.click("#zoom-fit")
    page.settle()
    whole = saved(page, "svg").read_text()
    for drawing in (near, whole):
        root = ElementTree.fromstring(drawing)
        assert (root.get("width"), root.get("height")) == ("1920", "1080")
        words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"shaheen2", "A", "5 nodes"} <= set(words)
    assert near.count("M") < whole.count("M")  # a rectangle, a node


def test_a_saved_page_opens_as_it_stood(opened, busy, tmp_path):
    page = opened(busy).go("#by=level:group&m=A:0:136-140&m=B:1:500&a=1&l=false&w=0,0,300,200")
    page.sentence("1 node")
    path = tmp_path / "page.html"
    path.write_bytes(saved(page, "html").read_bytes())
    page.page.click("#zoom-fit")
    page.settle()
    other = page.context.new_page()
    other.goto(path.as_uri())
    for said in (
        "document.getElementById('colour').value === 'level:group'",
        "document.querySelectorAll('#marks .name').length === 2",
        "document.getElementById('sentence').textContent.startsWith('1 node')",
        "document.querySelector('#links')?.checked === false",
        "document.getElementById('map').dataset.settled === 'true'",
    ):
        other.wait_for_function(f"() => {said}")
    assert labels(other) != labels(page.page)


def test_a_saved_page_is_coloured_by_ranks_and_by_hops_as_it_stood(opened, busy, tmp_path):
    page = opened(busy).go("#m=A:0:136-139&p=ring&n=2&by=rank&o=round-robin")
    page.until("() => document.getElementById('stepper').textContent.includes('rank 0 of 8')")
    stepper = page.text("#stepper p")
    assert "talks to 2 ranks" in stepper
    (tmp_path / "rank.html").write_bytes(saved(page, "html").read_bytes())
    assert opened_from(page, tmp_path, "rank") == (page.text("#legend"), stepper)
    waiting = []
    page.page.route("**/api/v1/hops?*", lambda request: waiting.append(request))
    page.go("#m=A:0:136-139&by=hops&f=nid00140")
    (tmp_path / "hops.html").write_bytes(saved(page, "html").read_bytes())  # hops are on their way
    page.page.route("**/api/v1/hops?*", lambda request: request.continue_())
    for request in waiting:
        request.continue_()
    page.page.locator("#legend", has_text="by the shortest way").wait_for()
    assert opened_from(page, tmp_path, "hops") == (page.text("#legend"), "")


def opened_from(page, folder, way):
    """Open a saved page, which has one of two colours, and return its legend and its stepper."""
    other = page.context.new_page()
    other.goto((folder / f"{way}.html").as_uri())
    other.wait_for_selector("#map[data-settled=true]", state="attached")
    offered = other.locator("#colour option").evaluate_all("all => all.map(one => one.value)")
    assert {"rank", "hops"} & set(offered) == {way}
    stepper = other.locator("#stepper p").all_inner_texts()
    said = other.locator("#legend").inner_text(), "".join(stepper[:1])
    other.close()
    return said


def test_a_mark_has_a_rank_file_too(opened, busy):
    page = opened(busy).go("#p=ring&n=2")
    page.paste("nid[00136-00139]")
    page.page.locator("#copy").get_by_text("Rank file").click()
    page.until("() => document.querySelector('#file textarea').value !== ''")
    assert "8 ranks" in page.text("#file [role=status]")


def test_a_link_brings_all_back(opened, busy):
    page = opened(busy).go()
    page.paste("nid00300 nid[00136-00150]")
    page.paste("c3-1c0")
    page.page.select_option("#colour", "job")
    page.page.locator("#legend label", has_text="984713").locator("input").uncheck()
    page.page.fill("#search", "nid00137")
    page.page.keyboard.press("Enter")
    page.page.click("#share")
    page.until("() => document.getElementById('notices').textContent.includes('copied')")
    link = page.page.evaluate("() => navigator.clipboard.readText()")
    assert link.startswith(busy.url)
    again = opened(busy).go(link.removeprefix(busy.url + "/"))
    assert again.marks() == page.marks()
    assert again.page.input_value("#colour") == "job"
    assert again.text("#node").startswith("name\nnid00137")
    assert not again.page.locator("#legend label", has_text="984713").locator("input").is_checked()
    again.page.click("#marks li:first-child .name")
    again.page.click("#copy button[data-format=nids]")
    again.until("() => document.querySelector('#copy textarea')?.value")
    assert again.page.input_value("#copy textarea").startswith("300,136")


def test_a_mark_too_long_for_a_list_travels_as_a_bitmap(opened, busy):
    page = opened(busy).go()
    page.paste(",".join(str(nid) for nid in range(136, 3000, 3)))
    count = page.marks()["A"]
    page.until("() => location.hash.includes(':~')")
    state = page.page.evaluate("() => location.hash")
    assert len(state) < 1500
    assert opened(busy).go(state).marks() == {"A": count}


@pytest.mark.parametrize(
    "state",
    [
        "#m=A:0:99999999-99999999999",
        "#m=%E0%A4%A:zz&by=nonsense&t=nowhere&f=nobody&n=-3&r=1e99&x=%E0%A4%A",
        "#m=A:0:~%%%%&plan=;;;;;;" + "&m=A:0:1" * 200,
    ],
)
def test_a_broken_link_is_borne(opened, busy, state):
    page = opened(busy).go(state)
    page.paste("nid00136")
    assert sum(page.marks().values()) >= 1


def test_the_legend_counts_and_filters(opened, busy):
    page = opened(busy).go("#by=state")
    counts = {
        words.strip(): int(number.replace(",", ""))
        for words, number in zip(
            page.page.locator("#legend .words").all_inner_texts(),
            page.page.locator("#legend .num").all_inner_texts(),
            strict=True,
        )
    }
    state = busy.ask("/api/v1/state").json
    machine = busy.ask("/api/v1/machine").json
    assert sum(n for words, n in counts.items() if words != "vacant place") == machine["count"]
    assert sum(n for words, n in counts.items() if words.startswith("free")) == state["free"]
    assert counts["vacant place"] == len(busy.ask("/api/v1/layout").json["views"][0]["vacant"]["x"])
    page.page.fill("#search", "nid00500")
    page.page.keyboard.press("Enter")
    page.settle()
    x, y = page.where("nid00500")
    before = page.colour_at(x - 4, y - 4)
    page.page.locator("#legend label", has_text="free").locator("input").uncheck()
    page.settle()
    assert page.colour_at(x - 4, y - 4) != before or page.colour_at(x, y) != before


def test_curl_lines_say_what_the_page_asks(opened, busy):
    page = opened(busy).go()
    page.paste("nid[00136-00139]")
    page.sentence("4 nodes in")
    page.page.click("#help-open")
    page.page.click("#curl summary")
    lines = page.page.locator("#curl-lines code").all_inner_texts()
    described = next(line for line in lines if line.endswith("/api/v1/describe'"))
    body = json.loads(described.split("--json '")[1].split("' '")[0])
    assert busy.ask("/api/v1/describe", body=body).json["count"] == 4
    assert all("NIDMAP_TOKEN" in line and busy.url in line for line in lines)
