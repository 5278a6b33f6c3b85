# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as a reader has it: at a desk and on a phone, in light and in dark, by keyboard alone, on paper, and of a
large fleet."""

from __future__ import annotations

import io
import pathlib
import re
import typing
import unicodedata

import axe_playwright_python.sync_playwright as axe
import pypdf
import pytest

from ansible_collections.linerate.rdma.tests.browser.conftest import ROOT, Open

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SIZES = pytest.mark.parametrize("size", (DESK, PHONE), ids=("desk", "phone"))
SCHEMES = pytest.mark.parametrize("scheme", ("light", "dark"))
MOST_PAGES = 9
#: of a processor, to parse, lay out and paint a page of 1,000 nodes with 8 rails
MOST_SECONDS = 1.0
LOADS = 3

WIDER_THAN_THE_WINDOW = """() => {
    const width = document.documentElement.clientWidth
    return [document.documentElement.scrollWidth > width, document.body.scrollWidth > width]
}"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(fold => { fold.open = true })"
LUMINANCE = """() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number)
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
}"""
#: all that a keyboard can reach; a number each, so that one can be told from another
NUMBERED = """() => {
    window.reachable = [...document.querySelectorAll('a[href], summary, input, [tabindex="0"]')]
    return window.reachable.length
}"""
FOCUSED = """() => {
    const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect()
    const fold = element.tagName === 'SUMMARY' ? element.parentElement : null
    return {
        number: window.reachable.indexOf(element),
        closed: fold !== null && !fold.open,
        seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && element.matches(':focus-visible'),
        inside: box.bottom > 0 && box.top < innerHeight && box.width > 0 && box.height > 0,
        text: element.textContent.slice(0, 60),
    }
}"""
NEXT_PICTURE = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
DEAD_ANCHORS = """() => [...document.querySelectorAll('a[href^="#"]')]
  .map(a => a.getAttribute('href')).filter(to => !document.getElementById(to.slice(1)))"""


def printed(page: typing.Any) -> list[str]:
    """The text of each sheet of A4, with the letters of a ligature of the font ("ff", "fi") apart."""
    reader = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4", prefer_css_page_size=True, print_background=True)))
    return [unicodedata.normalize("NFKC", sheet.extract_text()) for sheet in reader.pages]


@SIZES
@SCHEMES
@pytest.mark.parametrize("name", ("ill", "well", "trends"))
def test_nothing_is_wider_than_the_window(show: Open, name: str, size: typing.Any, scheme: str) -> None:
    page = show(name, viewport=size, color_scheme=scheme)
    assert page.evaluate(WIDER_THAN_THE_WINDOW) == [False, False]
    page.evaluate(OPEN_ALL)
    assert page.evaluate(WIDER_THAN_THE_WINDOW) == [False, False], "with all folds open"


@SCHEMES
def test_the_page_follows_the_scheme_of_its_reader(show: Open, scheme: str) -> None:
    light = show("ill", color_scheme=scheme).evaluate(LUMINANCE)
    assert light > 0.8 if scheme == "light" else light < 0.2


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    (("ill", DESK, "light"), ("waived", PHONE, "dark"), ("little", PHONE, "light"), ("trends", DESK, "dark")),
    ids=("ill", "waived-dark-phone", "little-phone", "trends-dark"),
)
def test_everybody_can_read_it(show: Open, name: str, size: typing.Any, scheme: str) -> None:
    """Contrast, names of what can be used, order of headings, with all folds open: rules of axe-core, WCAG and its best
    practices."""
    page = show(name, viewport=size, color_scheme=scheme)
    page.evaluate(OPEN_ALL)
    found = axe.Axe().run(page)
    assert not found.response["violations"], found.generate_report()


@SIZES
def test_verdict_and_first_thing_to_do_are_on_the_first_screen(show: Open, size: typing.Any) -> None:
    page = show("ill", viewport=size)
    for what, said in (("h1", "NOT GREEN"), (".steps > li .remedy >> nth=0", "Do: ")):
        shown = page.locator(what)
        box = shown.bounding_box()
        assert shown.inner_text().startswith(said) and box["y"] >= 0 and box["y"] + box["height"] <= size["height"], (
            what,
            box,
        )


@SIZES
def test_a_green_verdict_is_on_the_first_screen_with_nothing_to_do(show: Open, size: typing.Any) -> None:
    page = show("well", viewport=size)
    box = page.locator("h1").bounding_box()
    assert (
        page.locator("h1").inner_text() == "GREEN"
        and box["y"] + box["height"] <= size["height"]
        and not page.locator(".steps").count()
    )


def test_a_keyboard_is_enough(show: Open) -> None:
    """Tab by Tab through the page, opening each fold with Enter on the way: all is reached, and what has the focus
    shows it."""
    page = show("ill", viewport=DESK, reduced_motion="reduce")
    count = page.evaluate(NUMBERED)
    reached: set[int] = set()
    while True:
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused["number"] in reached or focused["number"] < 0:
            break
        reached.add(focused["number"])
        assert focused["seen"] and focused["inside"], focused
        if focused["closed"]:
            page.keyboard.press("Enter")
            assert not page.evaluate(FOCUSED)["closed"], focused
    assert reached == set(range(count)), page.evaluate(
        "numbers => numbers.map(number => window.reachable[number].outerHTML)", sorted(set(range(count)) - reached)
    )


def test_a_keyboard_skips_to_the_findings_and_filters_them(show: Open) -> None:
    page = show("ill", viewport=DESK, reduced_motion="reduce")
    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["x"] >= 0, "it is seen once it has the focus"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#findings"
    failures = page.locator("article.finding.fail")
    assert failures.first.is_visible()
    page.locator("#show-fail").focus()
    page.keyboard.press("Space")
    assert not any(article.is_visible() for article in failures.all())
    assert page.locator("article.finding.unknown").first.is_visible()


@pytest.mark.parametrize("name", ("ill", "well", "fleet"))
def test_links_of_the_page_lead_somewhere(show: Open, name: str) -> None:
    assert show(name).evaluate(DEAD_ANCHORS) == []


@pytest.mark.parametrize("name", ("ill", "well"))
def test_it_prints_on_a_few_sheets(show: Open, name: str) -> None:
    sheets = printed(show(name, color_scheme="dark"))
    assert len(sheets) <= MOST_PAGES
    assert "GREEN" in sheets[0] and "report.json" in sheets[-1]
    text = "".join(sheets)
    assert ("Do: " in text) is (name == "ill") and "host bridge" not in text, "sheets of nodes stay folded"


def test_on_paper_a_waiver_has_all_that_it_covers(show: Open) -> None:
    page = show("waived")
    covered = page.locator(".waivers details li").all_text_contents()
    text = "".join("".join(printed(page)).split())
    assert covered and all("".join(item.split()) in text for item in covered)


def test_a_sheet_to_sign_is_one_sheet(show: Open) -> None:
    for name in ("signature", "short signature"):
        (text,) = printed(show(name))
        assert text.count("name, place, date, signature") == 2, name


@SIZES
@pytest.mark.parametrize("name", ("signature", "short signature"))
def test_a_sheet_to_sign_can_be_read_on_a_screen(show: Open, name: str, size: typing.Any) -> None:
    page = show(name, viewport=size, color_scheme="dark")
    assert page.evaluate(WIDER_THAN_THE_WINDOW) == [False, False]
    assert page.evaluate(LUMINANCE) > 0.8, "paper is white"
    found = axe.Axe().run(page)
    assert not found.response["violations"], found.generate_report()


def test_a_thousand_nodes_are_there_within_a_second(show: Open, capsys: pytest.CaptureFixture[str]) -> None:
    """Seconds of the processor that the page's process has taken from its start to its first picture, so that what else
    runs on the machine is not in them."""
    spent, waited = [], []
    for _load in range(LOADS):
        page = show("fleet", viewport=DESK)
        page.evaluate(NEXT_PICTURE)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        spent.append(
            next(
                metric["value"]
                for metric in session.send("Performance.getMetrics")["metrics"]
                if metric["name"] == "ProcessTime"
            )
        )
        waited.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"))
    with capsys.disabled():
        print(
            f"\n1,000 nodes x 8 rails: {min(spent):.2f} s of a processor, loaded {min(waited):.2f} s after it was asked"
            f" for (fastest of {LOADS})"
        )
    assert 0 < min(spent) <= MOST_SECONDS


#: name of the picture; the page, the window, the scheme, and what of the page is on it; all of the window where nothing
#: is named
PICTURES: typing.Mapping[str, tuple[str, typing.Any, str, str]] = {
    "report": ("ill", {"width": 1000, "height": 760}, "light", ""),
    "report-phone": ("ill", PHONE, "dark", ""),
    "finding": ("ill", {"width": 900, "height": 900}, "light", "article.finding.fail >> nth=0"),
    "over-runs": ("trends", {"width": 1000, "height": 900}, "light", "#fabric figure:has(svg.trend)"),
    "signature": ("short signature", {"width": 760, "height": 900}, "light", "body"),
}
#: bytes: a reader on a slow line has them with the text
MOST_OF_A_PICTURE, MOST_OF_ALL = 150_000, 600_000


def test_pictures_of_the_documentation(show: Open, request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> None:
    """Made with --pictures, else into a folder that goes: that they can be made, and stay small, is held either way."""
    folder = ROOT / "docs" if request.config.getoption("--pictures") else tmp_path
    sizes = {}
    for name, (page, size, scheme, part) in PICTURES.items():
        opened = show(page, viewport=size, color_scheme=scheme)
        shown = opened.locator(part) if part else opened
        shown.screenshot(path=folder / f"{name}.png")
        content = (folder / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG")
        sizes[name] = len(content)
    assert max(sizes.values()) < MOST_OF_A_PICTURE and sum(sizes.values()) < MOST_OF_ALL, sizes


def test_pictures_that_the_documentation_shows_are_those_that_are_made() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    assert {match for text in texts for match in re.findall(r"([a-z-]+)\.png\)", text)} == set(PICTURES)
    assert {path.stem for path in (ROOT / "docs").glob("*.png")} == set(PICTURES)
