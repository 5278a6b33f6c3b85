# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the Lease that a run holds while it changes the cluster."""

from __future__ import annotations

import datetime
import typing

from ..._model.run.lease import NAME, NAMESPACE, Lease
from ..._parse.kubernetes.lease import CLOCK, DOING, HOST, PROCESS, RUN
from .names import Object


def render_lease(wanted: Lease) -> Object:
    """Render the Lease as a Kubernetes object.

    :param wanted: state of the Lease to write, with ``uid`` and ``version`` of the existing Lease that it replaces
    """
    holder = wanted.holder
    metadata: dict[str, typing.Any] = {
        "name": NAME,
        "namespace": NAMESPACE,
        "annotations": {RUN: holder.run, HOST: holder.host, PROCESS: holder.process, DOING: wanted.doing},
    }
    if wanted.stamp is not None:
        metadata["annotations"][CLOCK] = f"{wanted.stamp:.3f}"
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
    """Format a time with exactly six digits after the decimal point of the second, the only format that the API server
    accepts for MicroTime. Return None for None.
    """
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z" if moment is not None else None
