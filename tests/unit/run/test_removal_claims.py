# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that take network devices by ResourceClaims end a teardown as those with resources in their limits do."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from tests.unit.run.test_intents import A, Api, job, objects_of
from tests.unit.run.test_removal_gate import foreign, gate

Item = dict[str, typing.Any]


def claim(name: str, of_class: str, template: bool = True) -> Item:
    requests = [{"name": "device", "exactly": {"deviceClassName": of_class}}]
    spec: Item = {"devices": {"requests": requests}}
    kind = "ResourceClaimTemplate" if template else "ResourceClaim"
    metadata = {"name": name, "namespace": "jobs-compute", "labels": {}}
    return {"kind": kind, "metadata": metadata, "spec": {"spec": spec} if template else spec}


def claiming(kind: str, **source: str) -> Item:
    spec: Item = {"resourceClaims": [{"name": "device", **source}], "containers": [{"name": "c"}]}
    if kind == "Pod":
        return {**foreign(job("theirs", "jobs-compute", phase="Running"), nodeName="a0", **spec), "kind": kind}
    return foreign(job("theirs", "jobs-compute"), pytorchReplicaSpecs={"Worker": {"template": {"spec": spec}}})


OF_TEMPLATE, OF_CLAIM = {"resourceClaimTemplateName": "device"}, {"resourceClaimName": "device"}


@pytest.mark.parametrize("kind", ["PyTorchJob", "Pod"])
@pytest.mark.parametrize(
    ("source", "claims", "refused"),
    [
        (OF_TEMPLATE, [claim("device", "sriovnetwork.k8snetworkplumbingwg.io")], True),
        (OF_CLAIM, [claim("device", "dranet", False)], True),
        # the class of a site, and claims that could not be read, may be of network devices
        (OF_TEMPLATE, [claim("device", "fast")], True),
        (OF_TEMPLATE, [claim("device", "gpu.nvidia.com", False), claim("other", "gpu.nvidia.com")], True),
        ({}, [], True),
        (OF_TEMPLATE, [claim("device", "gpu.nvidia.com")], False),
        (OF_CLAIM, [claim("device", "compute-domain-default-channel.nvidia.com", False)], False),
    ],
)
def test_job_with_claims_for_network_devices_counts(
    kind: str, source: dict[str, str], claims: list[Item], refused: bool
) -> None:
    api = Api(*objects_of(A), claiming(kind, **source), *claims)
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match=f"have not ended: {kind} jobs-compute/theirs"):
        gate(api)


class Refusing(Api):
    """An API server that refuses lists of claims."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        if kind.startswith("ResourceClaim"):
            raise ApiError(403, "Forbidden", "cannot list", "GET")
        return super().list(kind, namespace, selector)


def test_claims_that_could_not_be_read_are_no_proof() -> None:
    with pytest.raises(RdmaError, match="have not ended"):
        gate(Refusing(*objects_of(A), claiming("Pod", **OF_TEMPLATE), claim("device", "gpu.nvidia.com")))
