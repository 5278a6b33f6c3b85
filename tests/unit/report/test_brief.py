# SPDX-License-Identifier: GPL-3.0-or-later

"""The report in twenty lines: what is said, that it stays as short however much is wrong, and that text of the world
formats and calls nothing."""

from __future__ import annotations

import dataclasses
import html
import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.publish import report_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import CLUSTER, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    STAGES,
    Finding,
    Waiver,
    build_pass,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import Report, build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.brief import MOST_TEXT, render_markdown
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

RUN, NOW = "20260102T030405Z-aaaaaa", "2026-01-02T03:10:00+00:00"
ABOUT = {
    "Cluster": "kubeconfig k in /h v1.34.4",
    "Nodes": "12",
    "Fabrics": "compute, storage",
    "By": "admin on bastion",
}
MASTER = Finding(
    "fabric.one_master",
    "compute",
    "fail",
    "2 masters",
    "1 master",
    "Two subnet managers claim the fabric.",
    "Stop one.",
)


def record(
    stage: str, *findings: Finding, waivers: typing.Sequence[Waiver] = (), closed_by: typing.Optional[str] = None
) -> Record:
    gate = judge(findings or [build_pass(f"{stage}.fine", "worker-1")], waivers)
    state: typing.Literal["open", "closed"] = "open" if gate.open else "closed"
    return Record(
        stage,
        RUN,
        "2026-01-02T03:04:05+00:00",
        NOW,
        False,
        state,
        gate.judged,
        closed_by=closed_by,
        waivers=tuple(waivers),
    )


def report(*others: Record) -> Report:
    records = {stage: record(stage) for stage in STAGES}
    made = build_report(
        {**records, **{other.stage: other for other in others}}, {}, RUN, NOW, {"linerate.rdma": "1.0.0"}
    )
    return dataclasses.replace(made, about=ABOUT)


def test_a_green_run_is_its_verdict_and_what_it_is_about() -> None:
    assert render_markdown(report()).splitlines() == [
        f"**linerate.rdma: GREEN** - {len(STAGES)} stages, {len(STAGES)} findings pass",
        "",
        "- Cluster: kubeconfig k in /h v1.34.4",
        "- Nodes: 12",
        "- Fabrics: compute, storage",
        "- By: admin on bastion",
        f"- Run: {RUN}, started 2026-01-02T03:04:05+00:00",
        "- Versions: linerate.rdma 1.0.0",
        f"- Findings: {len(STAGES)} pass",
        f"- Stages: {len(STAGES)} passed",
    ]


def test_the_head_names_who_began_the_run(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), RUN)
    folder.begin(RunStart(RUN, NOW, nodes=("worker-1",), fabrics=[{"name": "compute"}], by="admin on bastion"))
    assert report_of(folder, {}, {}, {}).head() == {
        "Nodes": "1",
        "Fabrics": "compute",
        "By": "admin on bastion",
        "Run": f"{RUN}, started unknown",
    }


def test_head_has_context_and_server_that_the_run_began_with(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), RUN)
    access = "kubeconfig k in /h (from KUBECONFIG), context gpu, API server https://api.example.com"
    folder.begin(RunStart(RUN, NOW, access=access))
    assert report_of(folder, {}, {}, {}).head()["Cluster"] == access
    folder.write("controller", CLUSTER, {"controller": {"where": "kubeconfig k in /h", "server": "v1.34.4"}})
    assert report_of(folder, {}, {}, {}).head()["Cluster"] == f"{access} v1.34.4"
    folder.begin(RunStart(RUN, NOW))
    assert report_of(folder, {}, {}, {}).head()["Cluster"] == "kubeconfig k in /h v1.34.4"


def test_a_red_run_names_causes_with_what_to_do_and_where_it_stopped() -> None:
    second = dataclasses.replace(MASTER, subject="storage")
    skipped = [
        record(stage, Finding(f"{stage}.run", f"stage {stage}", "skipped", why="x", remedy="y"), closed_by="fabric")
        for stage in STAGES[3:]
    ]
    lines = render_markdown(report(record("fabric", MASTER, second), *skipped)).splitlines()
    assert lines[0] == "**linerate.rdma: NOT GREEN** - stage fabric: 2 fail (fabric.one_master on compute and 1 more)"
    assert lines[-4:] == [
        "",
        "What to do next:",
        (
            "1. fail fabric.one_master on compute and 1 more: measured 2 masters; expected 1 master. Two subnet"
            " managers claim the fabric."
        ),
        "   Do: Stop one.",
    ]
    assert f"- Stages: 2 passed, stopped at fabric, {len(STAGES) - 3} not run" in lines


def test_it_has_twenty_lines_however_much_is_wrong() -> None:
    many = [
        Finding(f"fabric.check_{number}", "x" * 5000, "fail", "m" * 5000, "e" * 5000, "w\n" * 500, f"do {number}")
        for number in range(50)
    ]
    many.append(Finding("fabric.later", "x", "skipped", why="not tried", remedy="z"))
    text = render_markdown(report(record("fabric", *many)))
    lines = text.splitlines()
    assert len(lines) == 20 and lines[-1] == "47 more causes and 1 finding that follows from these are in report.html."
    assert len(text) < 20 * 5 * (MOST_TEXT + 20)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[click](https://evil.example)", "`[click](https://evil.example)`"),
        ("see https://evil.example/a?b=1&c=2, or <ftp://x>", "see `https://evil.example/a?b=1&c=2,` or \\<`ftp://x`>"),
        ("www.evil.example WWW.evil.example", "`www.evil.example` `WWW.evil.example`"),
        ("mail admin@evil.example, xmpp:a@b.c", "mail `admin@evil.example,` `xmpp:a@b.c`"),
        ("#12 !3 a/b#4 :tada: `www.x.y` 50 % #x", "`#12` `!3` `a/b#4` `:tada:` \\``www.x.y`\\` 50 % #x"),
        ("0000:3c:00.0 0000:de:00.0 03:04:05", "0000:3c:00.0 `0000:de:00.0` 03:04:05"),
        ("set $HOME/x, $`a`$", "set `$HOME/x,` `$`\\`a\\``$`"),
        ("<!channel> *all* `x` | ~y~ & z", "\\<!channel> \\*all\\* \\`x\\` \\| \\~y\\~ \\& z"),
        ("@here mlx5_0 and _x_, tools@sha256:0a", "(at)here mlx5_0 and \\_x\\_, tools@sha256:0a"),
        ("two\nlines\u202e", "two\\\\nlines\\\\u202e"),
    ],
)
def test_text_of_the_world_stays_text(text: str, shown: str) -> None:
    made = render_markdown(report(record("fabric", Finding("fabric.one_master", text, "fail", "", "", text, text))))
    assert f"1. fail fabric.one_master on {shown}. {shown}\n   Do: {shown}\n" in made


#: what readers make a link, a call or a picture of in text that is no code: the extension of CommonMark, GitHub and
#: GitLab
LINKED = re.compile(
    r"[a-z]://|www\.|(?i:mailto|xmpp):|[\w.+-]@[\w-]+\.\w|(?<!\w)@\w|[#!%~&$]\d|GH-\d|:[a-z+-][a-z0-9_+-]*:|:[0-9]{3,}:|\$[^$]*\$",
)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "https://evil.example",
            "x`https://evil.example",
            "`https://evil.example`",
            "``` https://evil.example ```",
            "\\`www.evil.example\\`",
        ),
        *(
            "a|www.evil.example|b",
            "<https://evil.example>",
            '[x](https://evil.example "y")',
            "![x](http://evil.example/p.png)",
            "[x]: http://evil.example",
        ),
        *(
            "http://evil.example/`a`b",
            "$`https://evil.example`$",
            "*https://evil.example*",
            "_www.evil.example_",
            "~~admin@evil.example~~",
        ),
        *(
            "(admin@evil.example)",
            "xmpp:a@b.c/d",
            "@all,@team/x",
            "GH-1 a/b#2 !3 &4 %5 ~6",
            "$a b$ $\\href{x}{y}$",
            ":x::tada:",
            "1:100:2",
            "a:de:b",
        ),
        *(
            "https://evil.example\nwww.x.y",
            "\u202ehttps://evil.example",
            "`" * 7 + "www.evil.example" + "`" * 7,
            "&#104;ttps://evil.example",
            "x" * 280 + "`www.evil.example",
        ),
    ],
)
def test_no_text_of_the_world_is_linked_by_a_reader(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    made = render_markdown(report(record("fabric", Finding("fabric.one_master", text, "fail", text, text, text, text))))
    page = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(made)
    assert not re.search(r"<(?!/?(?:p|ol|ul|li|strong|code)\b)", page), page
    outside = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<code>.*?</code>", "\0", page, flags=re.DOTALL)))
    assert not LINKED.search(outside), outside
