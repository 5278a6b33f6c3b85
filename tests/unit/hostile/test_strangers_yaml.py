# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of YAML that somebody else wrote, which job_lint and charts read: their aliases repeat what is in them."""

from __future__ import annotations

import itertools
import json
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint, list_jobs
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import yaml_documents
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.yaml_documents import (
    MOST_FILE,
    read_documents,
    read_yaml,
)
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

JOB = (
    "kind: Job\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{kueue.x-k8s.io/queue-name:"
    " {queue}}}}}\n{spec}"
)
SPEC = "spec: {template: {spec: {containers: [{name: c, image: x}]}}}\n"


@pytest.fixture(params=["as PyYAML is built", "without libyaml"])
def _each_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without libyaml":
        monkeypatch.setattr(yaml_documents, "has_libyaml", lambda: False)


def bomb(levels: int) -> str:
    return "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, levels)
    )


def job(name: str = "p", namespace: str = "t", queue: str = "q") -> str:
    return JOB.format(name=name, namespace=namespace, queue=queue, spec=SPEC)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (bomb(8) + job(name="*a7"), "more than 262144 values after its aliases are expanded"),
        (bomb(8) + SPEC.replace("image: x", "command: *a7") + "kind: Pod\n", "more than 262144 values"),
        ("a: &a " + "x" * 20_000 + "\nb: [" + ",".join(["*a"] * 60) + "]\n", "more than 1048576 characters"),
        ("a: &a {b: *a}\n", r"the alias \*a refers to no anchor, or to the node that contains the alias"),
        (
            "a: &a0 {}\n" + "".join(f"b{n}: &a{n} {{x: {{<<: *a{n - 1}, c: *a{n - 1}}}}}\n" for n in range(1, 40)),
            "more than",
        ),
        (
            "a: &a0 []\n" + "".join(f"b{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 70)),
            "the YAML is nested more than 64 levels deep",
        ),
        ("a: " + "[" * 200 + "]" * 200, "the YAML is nested more than 64 levels deep"),
        ("a: 1" + ":1" * 100_000, "a number of 200001 characters"),
        ("#" * (MOST_FILE + 1), "expected at most 1048576"),
    ],
    ids=lambda value: value[:12],
)
@pytest.mark.usefixtures("_each_loader")
def test_a_text_that_becomes_much_more_than_it_is_is_refused_at_once(text: str, seen: str) -> None:
    with bounded(10), pytest.raises(RdmaError, match=seen) as refused:
        read_documents(text, MOST_FILE)
    assert len(str(refused.value)) < 400 and (refused.value.remedy or "levels" in seen)


@pytest.mark.usefixtures("_each_loader")
def test_aliases_of_a_file_that_repeats_itself_are_taken() -> None:
    text = f"x: &x {{a: 1, b: [2]}}\ny: {{<<: *x, b: *x}}\n---\n{job()}"
    assert read_documents(text, MOST_FILE)[0] == {"x": {"a": 1, "b": [2]}, "y": {"a": 1, "b": {"a": 1, "b": [2]}}}


PRIME = 2**61 - 1


@pytest.mark.parametrize(
    "key",
    [
        lambda number: str(number * PRIME),
        lambda number: f"-0x{number * PRIME:x}",
        lambda number: f"!!int '{number * PRIME}'",
        lambda number: f"? !!int {{=: {number * PRIME}}}\n",
        lambda number: f"? !!float {{=: .nan, {number}: x}}\n",
    ],
    ids=["decimal", "hexadecimal", "tag", "number in a mapping", "no number in a mapping"],
)
@pytest.mark.usefixtures("_each_loader")
def test_keys_that_share_one_hash_cost_no_more_than_others(key: typing.Callable[[int], str]) -> None:
    text = "".join(f"{key(number)}: 1\n" for number in range(1, 201))
    try:
        (found,) = read_documents(text)
    except RdmaError as error:
        assert "not valid YAML: tag" in str(error)
    else:
        # the hash of a number is known, that of a text is not
        assert len(found) == 200 and {type(name) for name in found} == {str}


@pytest.mark.usefixtures("_each_loader")
def test_a_key_is_the_text_that_is_written_there() -> None:
    text = "{8080: &a 1, on: 2, 1.5: 3, ~: 4, 2001-01-01: 5, !!str eA==: 6, *a : 7, <<: {9: 8}, {10: 11}: 0}"
    with pytest.raises(RdmaError, match="a mapping key is a list or a mapping"):
        read_documents(text)
    text = text.replace(", {10: 11}: 0", ", =: x, y: *a")
    expected = {"8080": 1, "on": 2, "1.5": 3, "~": 4, "2001-01-01": 5, "eA==": 6, "1": 7, "9": 8, "=": "x", "y": 1}
    assert read_documents(text) == [expected]


#: tags of YAML 1.1 [yaml.org/type], and others
TAGS = (
    *("binary", "bool", "float", "int", "map", "merge", "null", "omap", "pairs", "seq", "set", "str", "timestamp"),
    *("value", "yaml", "python/object/apply:os.system", "python/name:os", "nothing", "{{ lookup('pipe', 'id') }}"),
)
#: what stands behind a tag
NODES = ("", "x", "''", "'0x'", "-", "1:a", "'1:x'", "{}", "{a: b}", "[]", "[a]", "[[a, b]]", "{=: 5}", "2001-99-99")
#: scalars without a tag that PyYAML takes for something of another type, or fails with
PLAIN = (
    *("0x_", "0b_", "0b2", "0o8", "._", "1_._", ".inf", ".nan", "1e999", "=", "<<", "~", "on", "2001-99-99", "9:9:9"),
    *(
        "2001-01-01t25:61:61.999999999999999z",
        f"1{':1' * 300}.0",
        f"1{':59' * 300}",
        "_" * 2000,
        "+_",
        "0x" + "f" * 990,
    ),
)


def _read_or_refuse(reader: typing.Callable[[str], typing.Any], text: str) -> typing.Any:
    """Return what a reader makes of a text; None where it refuses it in the way that its users expect."""
    try:
        return reader(text)
    except RdmaError as error:
        assert len(str(error)) < 800
        return None


@pytest.mark.parametrize("reader", [read_yaml, read_documents], ids=["read_yaml", "read_documents"])
@pytest.mark.usefixtures("_each_loader")
def test_no_tag_ends_a_run_or_makes_what_json_has_not(reader: typing.Callable[[str], typing.Any]) -> None:
    for tag, node, place in itertools.product(TAGS, NODES, ("a: {}", "a: [{}]", "? {}\n: a", "{}", "<<: {}")):
        found = _read_or_refuse(reader, place.format(f"!<tag:yaml.org,2002:{tag}> {node}"))
        assert found is None or (tag in ("map", "seq", "str") and json.dumps(found))
    for word, place in itertools.product(PLAIN, ("a: {}", "[{}]", "? {}\n: a", "<<: {}")):
        found = _read_or_refuse(reader, place.format(word))
        assert found is None or json.dumps(found)


@given(st.text(alphabet="!<>{}[]:,-?&*|'\"#%@=~ \n0123456789_.xabofnytstrli", max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_ends_a_run(text: str) -> None:
    for reader in (read_yaml, read_documents):
        _read_or_refuse(reader, text)


@pytest.mark.usefixtures("_each_loader")
def test_a_tag_is_refused_by_its_line_and_one_that_changes_nothing_is_taken() -> None:
    with pytest.raises(RdmaError, match=r"tag 'tag:yaml\.org,2002:bool' in line 2; expected no tag"):
        read_documents("a: 1\nb: !!bool x\n")
    (found,) = read_documents("{a: !!str 5, b: !!seq [1], c: !!map {d: 2}, e: ! x, f: 2001-01-01}")
    assert found == {"a": "5", "b": [1], "c": {"d": 2}, "e": "x", "f": "2001-01-01"}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (job(name="{a: [x, x]}"), "metadata.name is missing"),
        (job(name="Big_Name"), "metadata.name 'Big_Name' is rejected"),
        (job(namespace="[t, t]"), "metadata: namespace 'a list' is rejected"),
        (job(queue="{a: b}"), "kueue.x-k8s.io/queue-name 'a mapping' is rejected"),
        (job().replace("kind: Job", "kind: [Job]"), "kind is a list, expected text"),
        ("kind: Job\nmetadata: text\n" + SPEC, "Job without metadata: metadata is not a mapping"),
    ],
)
def test_a_name_that_is_none_is_refused_by_its_document(text: str, seen: str) -> None:
    documents = read_documents(text, MOST_FILE)
    (finding,) = lint(typing.cast(typing.Any, list_jobs(documents)), documents)
    assert (finding.check, finding.status) == ("job.read", "unknown")
    assert seen in finding.why and len(str(finding)) < 1000
