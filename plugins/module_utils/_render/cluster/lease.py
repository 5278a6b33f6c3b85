# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease of the run that changes the cluster, as an object. It is read back by _parse/kubernetes/lease.py."""

from __future__ import annotations

import datetime
import typing

from ..._model.run.lease import NAME, NAMESPACE, Lease
from ..._parse.kubernetes.lease import DOING, HOST, PROCESS, RUN
from .names import Object


def render_lease(wanted: Lease) -> Object:
    """:param wanted: with ``uid`` and ``version`` of the Lease that it replaces, if there is one"""
    holder = wanted.holder
    metadata: dict[str, typing.Any] = {
        "name": NAME,
        "namespace": NAMESPACE,
        "annotations": {RUN: holder.run, HOST: holder.host, PROCESS: holder.process, DOING: wanted.doing},
    }
    metadata.update({key: value for key, value in (("uid", wanted.uid), ("resourceVersion", wanted.version)) if value})
    spec = {
        "holderIdentity": f"{holder.run}@{holder.host}" if holder.host else holder.run,
        "leaseDurationSeconds": wanted.seconds,
        "leaseTransitions": wanted.transitions,
        "acquireTime": _micro_time(wanted.since),
        "renewTime": _micro_time(wanted.renewed),
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def _micro_time(moment: typing.Optional[datetime.datetime]) -> typing.Optional[str]:
    """The API server takes six digits and no others."""
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z" if moment is not None else None
