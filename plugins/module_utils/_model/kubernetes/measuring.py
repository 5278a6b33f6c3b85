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
    f"kubectl apply -f docs/rbac/measuring.yml. This file creates {NAMESPACE} with the label {LABEL}={PREPARED} and"
    " grants the group of the user access to it. Do not grant tenants any rights in this namespace"
)

#: why a node that --limit excludes has no pod, and the kind of this error
EXCLUDED = "the option --limit of ansible-playbook excludes the node, so no pod is started on it"
BY_LIMIT = "limit"
#: why no pod may measure on a fabric: cause and remedy
REFUSALS: dict[str, tuple[str, str]] = {
    "no_network": (
        "The network of the job pods does not exist, so this collection cannot copy it for the measuring pods.",
        (
            "See the findings of stage network, and the log of the operator that creates the"
            " NetworkAttachmentDefinition. Correct the cause, then run stage network again."
        ),
    ),
    "foreign_network": (
        (
            "The network differs from the network that the intent describes. CNI plugins run as root on the node, so"
            " this collection does not attach the measuring pods to a different network."
        ),
        (
            "Find the client that changed the network: kubectl get network-attachment-definitions -o yaml"
            " --show-managed-fields. Delete the network so that it is recreated, and add any setting that the network"
            " needs to the intent."
        ),
    ),
    "network_refused": (
        "The API server did not return the network, or refused its copy.",
        (
            "Grant the user the rights of docs/rbac. If the rights are complete, find the webhook that refuses a"
            f" NetworkAttachmentDefinition in {NAMESPACE}."
        ),
    ),
    "unprepared": (
        (
            f"This collection creates the namespace {NAMESPACE} for the measurement, and the namespace is empty. This"
            " collection does not copy accounts or secrets from other namespaces."
        ),
        (
            f"Ask a cluster admin to prepare the namespace with the account and the secrets: {PREPARE}. This"
            " collection does not delete a prepared namespace."
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
        """Return the observation, followed by the remedy that belongs to its cause, as one text for a finding."""
        return f"{self.text} {REFUSALS[self.cause][1]}"
