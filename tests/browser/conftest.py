# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests that show our pages in Debian's chromium, by 'make browser'; 'make test' leaves them out."""

from __future__ import annotations

import contextlib
import pathlib
import typing

import playwright.sync_api as playwright
import pytest

from ansible_collections.linerate.rdma.tests.browser import pages

CHROMIUM = "/usr/bin/chromium"
ROOT = pathlib.Path(__file__).parent.parent.parent

#: what opens a page: by its name, with what a context of the browser takes
Open = typing.Callable[..., typing.Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", action="store_true", help="make the pictures of docs/ anew")


@pytest.fixture(scope="session")
def browser() -> typing.Iterator[typing.Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture(scope="session")
def file_of(tmp_path_factory: pytest.TempPathFactory) -> typing.Callable[[str], pathlib.Path]:
    """Writes a page when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name: str) -> pathlib.Path:
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(pages.PAGES[name](), encoding="utf-8")
        return path

    return write


@pytest.fixture
def show(browser: typing.Any, file_of: typing.Callable[[str], pathlib.Path]) -> typing.Iterator[Open]:
    """Opens a page. At the end nothing may be in the console: an error, something that was not loaded, or what the
    policy of the page forbids."""
    said: list[str] = []
    with contextlib.ExitStack() as stack:

        def open_page(name: str, **context: typing.Any) -> typing.Any:
            opened = stack.enter_context(contextlib.closing(browser.new_context(**context)))
            page = opened.new_page()
            page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("requestfailed", lambda request: said.append(f"not loaded: {request.url}"))
            page.goto(file_of(name).as_uri())
            return page

        yield open_page
    assert not said
