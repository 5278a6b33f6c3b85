# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation as a site, in ``build/docs/html``: guides, pages of findings and roles as they are in the
repository, plugins and roles by antsibull-docs.

``python -m dev.docs links`` asks the addresses outside of the site as well; nothing else here needs a network.
"""

from __future__ import annotations

import html.parser
import os
import pathlib
import re
import sys
import typing
import urllib.parse
import zlib

from .setup import make_environment
from .steps import ANSIBLE_ENV, BUILD, StepError, guarded, run, say
from .tree import TREE, make_tree

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = BUILD / "venv-docs"
SITE = BUILD / "docs"
SOURCE, HTML = SITE / "source", SITE / "html"
#: what of the checkout is a page; the folders stay as they are, so that relative links hold
PAGES = ("*.md", "docs/**/*", "roles/*/README.md")
#: what the reference leads to outside of it: address below Ansible's documentation, and title. There is no network to
#: ask for them
ANSIBLE = {
    "std:label action_plugins": ("plugins/action.html#action-plugins", "Action plugins"),
    "std:label ansible_configuration_settings": (
        "reference_appendices/config.html#ansible-configuration-settings",
        "Ansible Configuration Settings",
    ),
    "std:label common_return_values": (
        "reference_appendices/common_return_values.html#common-return-values",
        "Return Values",
    ),
    "std:label callback_plugins": ("plugins/callback.html#callback-plugins", "Callback plugins"),
    **{
        f"std:envvar ANSIBLE_{name}": (f"reference_appendices/config.html#envvar-ANSIBLE_{name}", f"ANSIBLE_{name}")
        for name in ("PIPELINING", "STDOUT_CALLBACK", "DISPLAY_SKIPPED_HOSTS", "SHOW_CUSTOM_STATS")
    },
    "std:label ansible_collections.kubernetes.core.helm_info_module__return-status": (
        "collections/kubernetes/core/helm_info_module.html#return-status",
        "status",
    ),
    **{
        f"std:label ansible_collections.{name.replace('/', '.')}": (
            f"collections/{name}.html",
            name.replace("/", ".").rpartition("_")[0],
        )
        for name in (
            *[f"community/general/redfish_{what}_module" for what in ("command", "config", "info")],
            "community/okd/k8s_auth_module",
            "ansible/builtin/set_stats_module",
            "ansible/builtin/file_lookup",
            "ansible/builtin/default_callback",
        )
    },
}
#: the README is read on Galaxy as well, and so has addresses in place of relative links; pictures have one of their own
OURS = re.compile(
    r"https://(?:github\.com/linerate/linerate\.rdma/blob|raw\.githubusercontent\.com/linerate/linerate\.rdma)/main/([^)#]+)"
)
FINDINGS = "docs/findings/"


def main() -> None:
    make_environment(ENVIRONMENT, HERE / "docs.txt")
    copy = make_tree()
    lay(copy)
    _inventory()
    _reference()
    sphinx = [
        str(ENVIRONMENT / "bin" / "sphinx-build"),
        "-c",
        str(HERE / "docsite"),
        "-d",
        str(SITE / "doctrees"),
        "-j",
        "auto",
        str(SOURCE),
    ]
    run(
        "sphinx",
        [*sphinx, "-b", "html", "-W", "--keep-going", "-n", str(HTML)],
        "Correct the page that it names, in the checkout.",
    )
    broken = dead_links(HTML)
    if broken:
        raise StepError(
            "\n".join(broken[:40]),
            "Correct these links; a heading is linked to by its words in lower case with hyphens.",
        )
    boxes = red_boxes(HTML)
    if boxes:
        raise StepError(
            "\n".join(boxes[:40]),
            "The theme shows these as errors; take the tables of contents out, as dev/docsite/conf.py does.",
        )
    if "links" in sys.argv[1:]:
        run(
            "links to outside",
            [*sphinx, "-b", "linkcheck", str(SITE / "linkcheck")],
            "Correct or remove the links that it names.",
        )
    say(f"file://{HTML / 'index.html'}")


def lay(copy: pathlib.Path) -> None:
    """Put the pages together at SOURCE. Only what differs is written, so that Sphinx reads no page for nothing."""
    pages = {
        path.relative_to(copy).as_posix(): path.read_bytes()
        for part in PAGES
        for path in copy.glob(part)
        if path.is_file()
    }
    for name in [name for name in pages if name.endswith(".md")]:
        pages[name] = link_inside(pages[name].decode(), name, copy).encode()
        for target in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", pages[name].decode()):
            path = (copy / name).parent / target
            if path.is_file():
                pages.setdefault(path.resolve().relative_to(copy.resolve()).as_posix(), path.read_bytes())
    for name, text in by_stage(pages[f"{FINDINGS}README.md"].decode()).items():
        pages[f"{FINDINGS}{name}"] = text.encode()
    pages["index.md"] = (HERE / "docsite" / "index.md").read_bytes()
    pages["roles/index.md"] = (HERE / "docsite" / "roles.md").read_bytes()
    SOURCE.mkdir(parents=True, exist_ok=True)
    for old in SOURCE.rglob("*"):
        relative = old.relative_to(SOURCE).as_posix()
        if old.is_file() and relative not in pages and not relative.startswith("collection/"):
            old.unlink()
    for name, content in pages.items():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def link_inside(text: str, name: str, copy: pathlib.Path) -> str:
    """Make links of the addresses of files in the repository. GitHub alone shows a folder.

    :param name: of the page, from the top of the checkout
    """
    here = os.path.dirname(name)

    def link(found: typing.Match[str]) -> str:
        return os.path.relpath(found[1], here or ".") if (copy / found[1]).is_file() else found[0]

    return OURS.sub(link, text)


def by_stage(readme: str) -> dict[str, str]:
    """Return a page for each section of the table of findings, and the table itself with them below it: beside a
    finding are those of its stage, since two hundred lines help nobody.
    """
    made: dict[str, str] = {}
    for section in re.split(r"^(?=## )", readme, flags=re.MULTILINE)[1:]:
        names = re.findall(r"^\| \[[^\]]+\]\(([a-z_]+\.[a-z_]+)\.md\)", section, re.MULTILINE)
        if names:
            made[f"{names[0].partition('.')[0]}.md"] = f"{section[1:].rstrip()}\n\n{_toctree(names)}"
    return {**made, "README.md": f"{readme.rstrip()}\n\n{_toctree(name[:-3] for name in made)}"}


def _toctree(names: typing.Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```", ""])


def _inventory() -> None:
    """Where Ansible's own documentation has what the reference leads to, in the form in which Sphinx reads it."""
    told = ((*key.split(" "), *value) for key, value in ANSIBLE.items())
    lines = "".join(f"{name} {kind} -1 {place} {title}\n" for kind, name, place, title in told)
    head = (
        "# Sphinx inventory version 2\n# Project: Ansible\n# Version: devel\n# The remainder of this file is compressed"
        " using zlib.\n"
    )
    (SITE / "ansible.inv").write_bytes(head.encode() + zlib.compress(lines.encode()))


def _reference() -> None:
    """Modules, other plugins and roles, as ansible-doc knows them."""
    target = SOURCE / "collection"
    target.mkdir(mode=0o755, exist_ok=True)
    command = [
        str(BUILD / "venv" / "bin" / "antsibull-docs"),
        "--config-file",
        str(HERE / "docsite" / "antsibull-docs.cfg"),
        "collection",
        "--use-current",
    ]
    options = [
        "--squash-hierarchy",
        "--fail-on-error",
        "--cleanup",
        "everything",
        "--dest-dir",
        str(target),
        "linerate.rdma",
    ]
    environment = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": str(TREE)}
    run("antsibull-docs collection", [*command, *options], "Correct the documentation that it names.", env=environment)


_OWN_CONTENTS = re.compile(r"<\w+ [^>]*\bclass=\"(?:[^\"]* )?contents(?: [^\"]*)?\"")


class _Page(html.parser.HTMLParser):
    """What a page leads to, and what in it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, typing.Optional[str]]]) -> None:
        given = dict(attrs)
        self.links += [value for value in (given.get("href"), given.get("src")) if value is not None]
        self.anchors |= {value for value in (given.get("id"), given.get("name") if tag == "a" else None) if value}


def red_boxes(folder: pathlib.Path) -> list[str]:
    """Pages of a site with a table of contents of their own, which the theme marks as an error [furo.css,
    '.contents']."""
    pages = ((path, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html")))
    return [f"{path.relative_to(folder)}: a table of contents" for path, text in pages if _OWN_CONTENTS.search(text)]


def dead_links(folder: pathlib.Path) -> list[str]:
    """Links inside of a site that lead nowhere, each with its page. What leads out of it is not asked."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                found.append(f"{path.relative_to(folder)}: {link}: there is no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{path.relative_to(folder)}: {link}: there is no such place in the page")
    return found


if __name__ == "__main__":
    guarded(main)
