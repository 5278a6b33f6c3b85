# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server (a dry run) and the linter say of policies. A program for test_linter.py: it runs in the lab's
network namespace."""

from __future__ import annotations

import json
import sys
import typing

import kubernetes.config
import kubernetes.dynamic

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.policy_context import (
    read_cluster_before,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.sriov_policy import find_objections
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import observe
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import parse_policy

NAMESPACE, NAME = "sriov-network-operator", "lint-test"


def refusal(cluster: Cluster, definition: dict[str, typing.Any]) -> str:
    """The API server's words; empty when it takes the policy."""
    try:
        cluster.apply(definition, "lint-test", dry_run=True)
    except ApiError as error:
        if "admission webhook" not in error.text:
            raise
        return error.text
    return ""


def main(kubeconfig: str, path: str) -> None:
    """Print both verdicts on each spec in a file."""
    cluster = Cluster(kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(kubeconfig)))
    world = read_cluster_before(observe(cluster, NAMESPACE), {}, ClusterIntent())
    verdicts = []
    with open(path, encoding="utf-8") as file:
        specs = json.load(file)
    for spec in specs:
        metadata = {"name": NAME, "namespace": NAMESPACE}
        definition = {
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetworkNodePolicy",
            "metadata": metadata,
            "spec": spec,
        }
        found = [item.measured for item in find_objections(parse_policy(definition), world) if item.where == "webhook"]
        verdicts.append({"spec": spec, "refusal": refusal(cluster, definition), "objections": found})
    print(json.dumps(verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
