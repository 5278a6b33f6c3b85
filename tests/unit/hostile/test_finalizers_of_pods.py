# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet that writes a finalizer on a pod of its node: the removal names it, with the command that takes it off."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._run.pods import sweep

COMMAND = """kubectl patch pod p -n linerate-measure --type merge -p '{"metadata":{"finalizers":null}}'"""


class Api:
    """A pod that no deletion ends."""

    def __init__(self, finalizers: typing.Any) -> None:
        metadata = {"name": "p", "namespace": "linerate-measure", "uid": "u1", "finalizers": finalizers}
        self.pod: typing.Dict[str, typing.Any] = {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "bad"}, "status": {}}
        self.now = 0.0

    def list(self, kind: str, *_arguments: typing.Any, **_options: typing.Any) -> Listing:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return Listing((self.pod if kind == "Pod" else {"kind": "Node", "metadata": {"name": "bad"}, "status": ready},), "1")

    def delete(self, *_arguments: typing.Any, **_options: typing.Any) -> bool:
        self.pod["metadata"]["deletionTimestamp"] = "2026-11-27T16:00:00Z"
        return True

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("finalizers", "words"),
    [
        (["evil.example/stay"], "its finalizers evil.example/stay keep it, until: "),
        (["a/1", "a/2", "a/3", "a/4", "a/5"], "its finalizers a/1, a/2, a/3 and 2 more keep it, until: "),
        ([], ""),
        (None, ""),
        ("no list", ""),
    ],
)
def test_a_finalizer_is_named_with_the_command_that_takes_it_off(finalizers: typing.Any, words: str) -> None:
    api = Api(finalizers)
    (told,) = sweep(typing.cast("typing.Any", api), 60, lambda: api.now, api.sleep)
    assert told.startswith("linerate-measure/p (deleted after 60 s without the word of its node bad")
    assert (words + COMMAND in told) if words else "finalizers" not in told
