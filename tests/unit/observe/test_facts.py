# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of the facts: written whole or not at all, and no fact is taken for what it is not."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.redact import REDACTED, is_free, redact
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import CLUSTER, FACT_SCHEMA, Fact, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store import facts
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.run_start import read_start
from ansible_collections.linerate.rdma.tests.unit.examples import examples

RUN = "20260102T030405Z-aaaaaa"
TIME = "2026-01-02T03:04:05+00:00"


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: pathlib.Path) -> FactFolder:
    folder = FactFolder(str(tmp_path), RUN)
    folder.begin(RunStart(RUN, TIME, nodes=("worker-1", "worker-2")))
    return folder


_NAMES = (
    "password client_key API-KEY x.mkey sm_key private-keys Token kubeconfig bearer to\u212aen guid rate secret\n pkeys"
).split(" ")
_TEXTS = (
    "eyJhbGciOi.eyJzdWIiOi.x",
    "a\neyJhbGciOi.eyJzdWIiOi",
    "Bearer abcdefgh1",
    "PASSWORD: p",
    "token=t",
    "-----BEGIN RSA PRIVATE KEY-----",
    "client-key-data: x",
    "0x1",
)
_DATA = some.recursive(
    some.one_of(some.none(), some.integers(), some.text(), some.sampled_from(_TEXTS)),
    lambda inner: some.one_of(
        some.lists(inner, max_size=3),
        some.dictionaries(some.one_of(some.text(max_size=8), some.sampled_from(_NAMES)), inner, max_size=3),
    ),
    max_leaves=8,
)


@hypothesis.given(_DATA)
def test_what_is_not_looked_through_has_nothing_to_take_out(data: typing.Any) -> None:
    assert not is_free(json.dumps(data)) or redact(data) == data


def test_ordinary_facts_are_not_looked_through() -> None:
    assert is_free(
        json.dumps(
            {
                "hcas": [
                    {
                        "name": "mlx5_0",
                        "partition_keys": ["0xffff"],
                        "driver": "mlx5_core",
                        "guid": "b83f:d203:00e1:0000",
                    }
                ]
            }
        )
    )


def put(folder: FactFolder, text: str, kind: str = "hcas", node: str = "worker-1") -> pathlib.Path:
    """A file that something else wrote."""
    path = pathlib.Path(folder.path(kind, node))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def fact(**changes: typing.Any) -> str:
    return json.dumps({**to_data(Fact(RUN, TIME, "worker-1", "hcas", {"hcas": []})), **changes})


def test_fact_says_of_whom_when_and_in_which_run_it_is(folder: FactFolder, tmp_path: pathlib.Path) -> None:
    path = folder.write("hcas", "worker-1", {"hcas": (1, 2)})
    assert path == str(tmp_path / "facts" / "hcas" / "worker-1.json")
    found = folder.read("hcas", "worker-1")
    assert found is not None and found.time >= TIME
    assert (found.run, found.node, found.kind, found.value, found.error, found.schema) == (
        RUN,
        "worker-1",
        "hcas",
        {"hcas": [1, 2]},
        None,
        FACT_SCHEMA,
    )
    assert folder.has("hcas", "worker-1") and not folder.has("hcas", "worker-2")
    assert (
        folder.write("sync", value=1) == str(tmp_path / "facts" / "sync" / f"{CLUSTER}.json")
        and folder.value("sync") == 1
    )


def test_interrupted_write_leaves_the_old_fact(folder: FactFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pathlib.Path(folder.write("hcas", "worker-1", "old"))

    def interrupt(*_names: str, **_folders: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            folder.write("hcas", "worker-1", "new")
    found = folder.read("hcas", "worker-1")
    assert found is not None and found.value == "old"
    assert os.listdir(path.parent) == ["worker-1.json"], "no temporary file is left"


def test_folder_that_cannot_be_written_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "facts").write_text("", encoding="utf-8")
    folder = FactFolder(str(tmp_path), RUN)
    with pytest.raises(FileError, match=r"facts/hcas/worker-1\.json could not be written"):
        folder.write("hcas", "worker-1", 1)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileError, match=r"file/run\.json could not be written"):
        FactFolder(str(tmp_path / "file"), RUN).begin(RunStart(RUN, TIME))


def test_fact_of_another_run_is_never_counted(folder: FactFolder) -> None:
    put(folder, fact(run="20250101T000000Z-bbbbbb"))
    assert folder.read("hcas", "worker-1") is None
    assert folder.of_nodes("hcas", ["worker-1"])["worker-1"]["value"] is None
    put(folder, fact(run="20250101T000000Z-bbbbbb", kind="sync", node=CLUSTER), "sync", CLUSTER)
    assert folder.value("sync") is None


def test_file_that_says_nothing_is_no_fact(folder: FactFolder) -> None:
    put(folder, "null")
    assert folder.read("hcas", "worker-1") is None


def test_fact_that_is_older_than_the_run_was_not_looked_at(folder: FactFolder) -> None:
    os.utime(folder.write("hcas", "worker-1", 1), (1, 1))
    assert not folder.has("hcas", "worker-1")


def test_no_node_is_ever_dropped(folder: FactFolder) -> None:
    folder.write("hcas", "worker-1", {"hcas": []})
    folder.write("hcas", "worker-2", error="unreachable: No route to host")
    put(folder, "{", node="worker-3")
    found = folder.of_nodes("hcas", ["worker-1", "worker-2", "worker-3", "worker-4"])
    assert found["worker-1"] == {"value": {"hcas": []}, "error": None}
    assert found["worker-2"] == {"value": None, "error": "unreachable: No route to host"}
    assert found["worker-3"]["value"] is None and "worker-3.json could not be read" in found["worker-3"]["error"]
    assert found["worker-4"] == {
        "value": None,
        "error": "was not asked: this run has no fact hcas of it (left out by --limit?)",
    }


def test_error_about_the_cluster_is_raised(folder: FactFolder) -> None:
    folder.write("sync", error="the API server did not respond")
    with pytest.raises(FileError, match="the API server did not respond"):
        folder.value("sync")


@pytest.mark.parametrize(
    ("value", "error", "said"), [(1, "x", "a value and an error"), (None, None, "neither"), (None, "", "neither")]
)
def test_fact_is_either_a_value_or_an_error(
    folder: FactFolder, value: typing.Any, error: typing.Optional[str], said: str
) -> None:
    with pytest.raises(FileError, match=said):
        folder.write("hcas", "worker-1", value, error)
    put(folder, fact(value=value, error=error))
    with pytest.raises(FileError, match=said):
        folder.read("hcas", "worker-1")


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_empty_answer_is_a_value(folder: FactFolder, value: typing.Any) -> None:
    folder.write("hcas", "worker-1", value)
    assert folder.of_nodes("hcas", ["worker-1"]) == {"worker-1": {"value": value, "error": None}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "could not be read:"),
        (fact()[:-5], "could not be read:"),
        ("[]", "a list; expected a mapping"),
        ("7", "expected a mapping"),
        ("{}", "missing"),
        ("[" * 100_000, "nesting"),
        ("\udcff\udcfe", "could not be read:"),
        (fact(extra=1), "unknown key"),
        (fact(run=7), "expected a string"),
        (fact(node="worker-2"), "contains the fact hcas of worker-2"),
        (fact(kind="pings"), "contains the fact pings of worker-1"),
        (fact(schema=FACT_SCHEMA + 1, extra=1), "of a newer version of linerate.rdma"),
        (fact(schema="1"), "schema is '1'; expected 1"),
    ],
)
def test_broken_fact_is_named_and_never_taken(folder: FactFolder, text: str, said: str) -> None:
    path = put(folder, text)
    with pytest.raises(FileError, match=said) as caught:
        folder.read("hcas", "worker-1")
    assert str(path) in str(caught.value)
    assert said in folder.of_nodes("hcas", ["worker-1"])["worker-1"]["error"]


@pytest.mark.parametrize(
    "node",
    [
        "../x",
        "/",
        "/etc/passwd",
        ".",
        "..",
        "",
        "a/b",
        "a\\b",
        "n\u00f6de",
        "\ud800",
        "a\x00b",
        "%2E",
        "a b\n",
        CLUSTER,
    ],
)
def test_name_of_a_node_stays_in_the_folder(folder: FactFolder, tmp_path: pathlib.Path, node: str) -> None:
    path = folder.write("hcas", node, "mine")
    assert (
        pathlib.Path(path).parent == tmp_path / "facts" / "hcas"
        and pathlib.Path(path).resolve().parent == (tmp_path / "facts" / "hcas").resolve()
    )
    if node == "\ud800":
        with pytest.raises(FileError, match="contains the fact hcas of"):
            folder.read("hcas", node)
        return
    found = folder.read("hcas", node)
    assert found is not None and (found.node, found.value) == (node, "mine")


@pytest.mark.parametrize("node", ["n" * 300, "\u6f22" * 100])
def test_name_that_is_too_long_is_refused(folder: FactFolder, node: str) -> None:
    with pytest.raises(FileError, match="could not be written"):
        folder.write("hcas", node, 1)
    assert "could not be read" in folder.of_nodes("hcas", [node])[node]["error"] and not folder.has("hcas", node)


@pytest.mark.parametrize("kind", ["", "../x", "HCAs", "a/b", "9", "a" * 65, "a\n", "a.b"])
def test_what_is_no_kind_is_refused(folder: FactFolder, kind: str) -> None:
    with pytest.raises(FileError, match="is not a valid kind of fact"):
        folder.write(kind, "worker-1", 1)


def test_no_secret_reaches_the_folder(folder: FactFolder) -> None:
    path = folder.write(
        "hcas", "worker-1", {"token": "geheim", "said": "password=geheim x", "kubeconfig": "geheim", "m_key": "geheim"}
    )
    failed = folder.write("hcas", "worker-2", error="curl: token: geheim")
    start = folder.begin(RunStart(RUN, TIME, cluster={"password": "geheim"}))
    assert all("geheim" not in pathlib.Path(name).read_text(encoding="utf-8") for name in (path, failed, start))
    found = folder.read("hcas", "worker-1")
    assert found is not None and found.value["token"] == REDACTED


def test_run_says_what_it_began_with(folder: FactFolder, tmp_path: pathlib.Path) -> None:
    start = RunStart(
        RUN,
        TIME,
        True,
        ("b", "a"),
        ("rdma_fabrics",),
        [{"name": "x"}],
        None,
        {"disruption": "none"},
        {"ansible-core": "2.19.0"},
    )
    folder.begin(start)
    assert folder.start() == start == read_start(str(tmp_path))
    assert read_start(str(tmp_path / "nowhere")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "the file does not exist"),
        (json.dumps(to_data(RunStart("20250101T000000Z-bbbbbb", TIME))), "it belongs to run 20250101T000000Z-bbbbbb"),
        ("{", "could not be read:"),
        ("{}", "missing"),
        (
            json.dumps({**to_data(RunStart(RUN, TIME)), "schema": FACT_SCHEMA + 1, "more": 1}),
            "of a newer version of linerate.rdma",
        ),
    ],
)
def test_folder_of_no_run_of_ours_is_said(tmp_path: pathlib.Path, text: typing.Optional[str], said: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=said):
        FactFolder(str(tmp_path), RUN).start()


PLAIN = some.recursive(
    some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner | some.none(), max_size=4),
    max_leaves=12,
)


@hypothesis.given(PLAIN, some.text(max_size=25), some.from_regex(r"\A[a-z][a-z0-9_]{0,63}\Z"))
@hypothesis.settings(max_examples=examples(50))
def test_what_is_written_is_read_back_the_same(value: typing.Any, node: str, kind: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = FactFolder(name, RUN)
        folder.write(kind, node, value)
        assert folder.of_nodes(kind, [node]) == {node: {"value": redact(value), "error": None}}


def _nested(levels: int) -> typing.Any:
    return {"net": _nested(levels - 1)} if levels else 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"attachments": ["x" * 50] * 100, "nodes": [1]},
            (
                "bytes; the limit is 3999 for a fact of the cluster in a run of 2 nodes. Its largest"
                " part is attachments with 5301 bytes"
            ),
        ),
        (
            [[1], [2] * 500],
            (
                "values; the limit is 222 for a fact of the cluster in a run of 2 nodes. Its largest"
                " part is entry 1 with 1001 bytes"
            ),
        ),
        (_nested(64), "more than 64 levels of lists and mappings"),
    ],
    ids=["bytes", "values", "levels"],
)
def test_what_could_not_be_read_again_is_an_error_that_names_its_largest_part(
    folder: FactFolder, monkeypatch: pytest.MonkeyPatch, value: typing.Any, said: str
) -> None:
    monkeypatch.setattr(facts, "MOST_BYTES", 4000)
    folder.write("networks", value=value)
    read = folder.read("networks")
    assert (
        read is not None
        and read.error is not None
        and read.error.startswith("it could not be stored: it has ")
        and said in read.error
    )
    folder.write("networks", value={"nodes": [1]})
    assert folder.value("networks") == {"nodes": [1]}
