# SPDX-License-Identifier: GPL-3.0-or-later

"""Sphinx's settings; dev/docs.py lays the sources together and calls it. Only what is not Sphinx's default."""

from __future__ import annotations

import pathlib
import re
import typing

project = "linerate.rdma"
copyright = "The linerate.rdma authors"
extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
# made by dev/docs.py, since there may be no network
intersphinx_mapping = {
    "ansible": (
        "https://docs.ansible.com/projects/ansible/devel/",
        str(pathlib.Path(__file__).parents[2] / "build/docs/ansible.inv"),
    )
}
html_theme = "furo"
html_title = "linerate.rdma"
html_show_sphinx = False
# cells of tables wrap
html_static_path = ["static"]
html_css_files = ["site.css"]
# the sources are in the repository
html_copy_source = False
pygments_style = "ansible"
highlight_language = "YAML+Jinja"
nitpicky = True
# headings are linked to as GitHub names them
myst_heading_anchors = 4
myst_links_external_new_tab = False
# no extension of Markdown: GitHub must show the same text
myst_enable_extensions: list[str] = []

# antsibull-docs begins each page with one; the theme has it beside each page, and marks a second one as an error, in
# red
_CONTENTS = re.compile(r"^\.\. contents::[^\n]*\n(?:[ \t]+:[^\n]*\n)*", re.MULTILINE)


def leave_out_contents(_app: typing.Any, _page: str, source: list[str]) -> None:
    """Take tables of contents out of the text of a page before it is read."""
    source[0] = _CONTENTS.sub("", source[0])


def setup(app: typing.Any) -> None:
    """Connect what Sphinx calls."""
    app.connect("source-read", leave_out_contents)
