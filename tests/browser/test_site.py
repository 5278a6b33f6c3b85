# SPDX-License-Identifier: GPL-3.0-or-later

"""The site of the documentation as a reader has it, by 'make docs', which builds it before."""

from __future__ import annotations

import pathlib
import typing
import urllib.parse

import pytest

from ansible_collections.linerate.rdma.tests.browser.conftest import ROOT

HTML = ROOT / "build" / "docs" / "html"
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
#: those that a new user opens
FIRST = ("index.html", "README.html", "docs/guides/first_run.html", "docs/changes.html", "docs/findings/README.html")
#: what hides text: a page that is wider than the window, and a table that is wider than its box
HIDDEN = """() => {
    const wide = element => element.scrollWidth > element.clientWidth + 1
    const found = [...document.querySelectorAll('.table-wrapper')].filter(wide)
        .map(box => `a table hides text: ${box.textContent.trim().replace(/\\s+/g, ' ').slice(0, 60)}`)
    return wide(document.documentElement) ? [...found, 'the page is wider than the window'] : found
}"""
EMPTY_PICTURES = """() => [...document.images].filter(image => image.complete && !image.naturalWidth)
    .map(image => `no picture: ${image.getAttribute('src')}`)"""
LINKS = "() => [...document.querySelectorAll('a[href]')].map(link => link.href).filter(to => to.startsWith('file:'))"
#: of the sidebar: the page itself, and what is beside it
CURRENT = "() => document.querySelectorAll('.sidebar-tree .current-page').length"
NEIGHBOURS = "() => document.querySelectorAll('.related-pages a.prev-page, .related-pages a.next-page').length"


@pytest.fixture(scope="module")
def site() -> list[str]:
    """Names of the pages, of which there are some hundred."""
    pages = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html") if "_static" not in path.parts)
    assert len(pages) > 300 and set(FIRST) <= set(pages), "build the site first: python3 -m dev.docs"
    return pages


class Reader:
    """A window in which one page after the other is opened."""

    def __init__(self, browser: typing.Any, size: dict[str, int]) -> None:
        self._context = browser.new_context(viewport=size)
        self.page = self._context.new_page()
        self._said: list[str] = []
        self.page.on("console", lambda message: self._said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self._said.append(str(error)))
        self.page.on("requestfailed", lambda request: self._said.append(f"not loaded: {request.url}"))

    def read(self, name: str) -> list[str]:
        """Open a page, and return what is wrong with it: in the console, in its pictures, and what it hides."""
        self._said.clear()
        self.page.goto((HTML / name).as_uri())
        found = [*self._said, *self.page.evaluate(EMPTY_PICTURES), *self.page.evaluate(HIDDEN)]
        return [f"{name}: {text}" for text in found]

    def links(self) -> set[pathlib.Path]:
        """Files to which the open page leads."""
        return {
            pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(link).path)) for link in self.page.evaluate(LINKS)
        }

    def close(self) -> None:
        self._context.close()


def test_no_page_hides_text_says_anything_in_the_console_or_leads_nowhere(browser: typing.Any, site: list[str]) -> None:
    reader, wrong, links = Reader(browser, DESK), [], set()
    for name in site:
        wrong += reader.read(name)
        links |= reader.links()
    reader.close()
    assert wrong == []
    assert [str(path) for path in sorted(links) if not path.exists()] == []


def test_no_page_hides_text_on_a_phone(browser: typing.Any, site: list[str]) -> None:
    """Neither tables nor anything else is wider than the window."""
    reader = Reader(browser, PHONE)
    wrong = [text for name in site for text in reader.read(name)]
    reader.close()
    assert wrong == []


def test_each_finding_is_in_the_sidebar_and_between_others(browser: typing.Any, site: list[str]) -> None:
    reader = Reader(browser, DESK)
    alone = []
    for name in [name for name in site if name.startswith("docs/findings/")]:
        reader.read(name)
        if (reader.page.evaluate(CURRENT), reader.page.evaluate(NEIGHBOURS)) != (1, 2):
            alone.append(name)
    reader.close()
    assert alone == []


def test_landing_page_shows_the_report_and_leads_to_each_task(browser: typing.Any) -> None:
    reader = Reader(browser, DESK)
    assert reader.read("index.html") == []
    page = reader.page
    assert page.locator("article img").first.evaluate("image => image.naturalWidth") > 600
    assert page.locator("article pre").first.inner_text().count("ansible-playbook") == 3
    assert page.locator("article table a").count() > 20
    reader.close()
