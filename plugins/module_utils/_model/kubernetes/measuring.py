# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespace of the measuring pods. It is separate from the namespaces of the jobs, so that users who can create
pods there do not gain the permissions that a measurement needs.
"""

from __future__ import annotations

import dataclasses

#: of the pods that measure
NAMESPACE = "linerate-measure"
#: label of the namespace: it is the collection's own, or an admin has prepared it
LABEL, OWN, PREPARED = "linerate.rdma/measure", "own", "prepared"
#: name of the NetworkPolicy there
POLICY = "linerate-rdma"
#: how an admin prepares it
PREPARE = (
    f"kubectl apply -f docs/rbac/measuring.yml, which makes {NAMESPACE} with the label {LABEL}={PREPARED} and lets the"
    " group of the user work there; give tenants no rights in it"
)

#: why no pod may measure on a fabric: cause and remedy
REFUSALS: dict[str, tuple[str, str]] = {
    "no_network": (
        (
            "The network that the pods of jobs attach to is not there, so there is nothing to copy for the pods that"
            " measure."
        ),
        "See the stage network, and the log of the operator that makes the NetworkAttachmentDefinition.",
    ),
    "foreign_network": (
        (
            "The network is not what the intent makes. CNI plugins run as root on the node, so the pods that measure"
            " take no other."
        ),
        (
            "Find out who changed it (kubectl get network-attachment-definitions -o yaml --show-managed-fields), delete"
            " it so that it is made anew, and write into the intent what the network needs."
        ),
    ),
    "network_refused": (
        "The API server did not give the network, or did not take its copy.",
        (
            "Give the user the rights of docs/rbac, and see which webhook refuses a NetworkAttachmentDefinition in"
            f" {NAMESPACE}."
        ),
    ),
    "unprepared": (
        (
            f"The namespace {NAMESPACE} is made for the measurement and is empty: accounts and secrets of other"
            " namespaces are not in it, and none is copied."
        ),
        (
            f"Have an admin of the cluster prepare the namespace with the account and the secrets: {PREPARE}. It then"
            " stays."
        ),
    ),
}


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The reason why no measuring pod is started on a fabric.

    :ivar cause: key of REFUSALS, the table of causes and remedies
    :ivar text: the observation
    """

    cause: str
    text: str

    @property
    def told(self) -> str:
        """Return the observation and the remedy as one text."""
        return f"{self.text} {REFUSALS[self.cause][1]}"
