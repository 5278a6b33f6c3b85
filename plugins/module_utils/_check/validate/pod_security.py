# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the Pod Security level that the intent sets for the namespaces of jobs permits these jobs. Part of stage
validate. Check id: ``validate.pod_security``.

Levels: Kubernetes' Pod Security Standards. ``baseline`` does not have IPC_LOCK among the capabilities that a container
may add.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import carries_rdma
from ..._model.job.surroundings import ENFORCE as LABEL
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from ..job.admission import NEEDS_PRIVILEGED

_CHECK = "validate.pod_security"
_BASELINE = f"{LABEL}=baseline or privileged"
_OTHERWISE = (
    f"or jobs without IPC_LOCK, with {LABEL}=baseline and a raised limit of locked memory (rdma_cluster.host.memlock)"
)


def check(intent: Intent) -> typing.Iterator[Finding]:
    """Check ``pod_security`` of the fabrics, namespace by namespace: the fabrics of one namespace set the same level,
    and each level has a reason. Warn about a level that makes users root on the nodes, or that rejects pods with
    IPC_LOCK. Yield at least one finding for each namespace."""
    spaces: dict[str, list[tuple[int, Fabric]]] = {}
    for index, fabric in enumerate(intent.fabrics):
        spaces.setdefault(fabric.network.namespace, []).append((index, fabric))
    for name, fabrics in spaces.items():
        yield from _check_namespace(name, fabrics)


def _check_namespace(name: str, fabrics: typing.Sequence[tuple[int, Fabric]]) -> typing.Iterator[Finding]:
    rdma = any(carries_rdma(fabric) for _index, fabric in fabrics)
    expected = f"{NEEDS_PRIVILEGED}; {_OTHERWISE}" if rdma else _BASELINE
    said = [(f"rdma_fabrics[{index}].network.pod_security", fabric.network.pod_security) for index, fabric in fabrics]
    given = [(path, level) for path, level in said if level is not None]
    if not given:
        yield build_pass(_CHECK, f"namespace {name}", "the namespace keeps its own level", expected)
        return
    path, first = given[0]
    for other, level in given[1:]:
        if level.enforce != first.enforce:
            why = f"Both fabrics use the namespace {name}. A namespace has one level, and {path} sets {first.enforce}."
            yield Finding(
                _CHECK,
                other,
                FAIL,
                level.enforce,
                first.enforce,
                why,
                "Set the same level for both fabrics, or remove pod_security from one of them. Then run"
                " stage validate again.",
            )
    for place, level in given:
        if not level.reason.strip():
            why = (
                "The level decides whether a user who may create pods in the namespace can become root on the"
                " nodes, so the report must show why you chose it."
            )
            yield Finding(
                _CHECK,
                f"{place}.reason",
                FAIL,
                "no reason",
                "a reason",
                why,
                f"Set {place}.reason to the reason why the jobs need this level, or remove {place} from the"
                " intent. Then run stage validate again.",
            )
    if first.enforce == "privileged":
        why = (
            f"Every user who may create pods in {name} can become root on the nodes. The reason in the intent is:"
            f" {first.reason.strip()}."
        )
        remedy = (
            "Grant rights in the namespace only to users who may be root on the nodes. Otherwise remove"
            " pod_security, and run jobs without IPC_LOCK. Then run stage validate again."
        )
        yield Finding(_CHECK, path, WARN, "privileged", _OTHERWISE[3:], why, remedy)
    elif rdma:
        why = (
            "At this level the API server rejects pods with the capability IPC_LOCK, and the lookup render_job adds"
            f" IPC_LOCK to jobs. The reason in the intent is: {first.reason.strip()}."
        )
        yield Finding(
            _CHECK,
            path,
            WARN,
            first.enforce,
            expected,
            why,
            "Run jobs without IPC_LOCK, and raise the limit in rdma_cluster.host.memlock. Then run stage"
            " validate again.",
        )
    else:
        yield build_pass(_CHECK, path, f"{first.enforce}: {first.reason.strip()}", _BASELINE)
