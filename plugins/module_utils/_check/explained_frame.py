# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings that all stages share, and of those of the teardown. Check ids: ``*.error``, ``*.run``,
``*.intent``, ``teardown.*``.
"""

from __future__ import annotations

from .._model.node.kernel_arguments import DROP_IN, RECORD
from .._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "stage.error": Explanation(
        means=(
            "A task of the stage failed, so nothing after it was looked at. No waiver covers it: the stage has proven"
            " nothing."
        ),
        measured="The task and its message are beside `measured`.",
        causes=(
            "The API server, a node or a tool refused or did not answer: its own words are there.",
            "In check mode: the task needs what an earlier stage would make.",
            (
                "The check raised an exception over what a node answered: the finding names the node, or the nodes of"
                " which it is not known which one is at fault."
            ),
            "A mistake in the collection, where the text says so.",
        ),
        look=("ansible-playbook linerate.rdma.site -vv",),
        remedy=(
            "Correct the cause that the text names, and run the stage again. Report it where the text says that it is a"
            " mistake in the collection."
        ),
    ),
    "stage.intent": Explanation(
        means="The intent is wrong, so the stage did not start. Nothing was touched.",
        measured="The variables against the schema and against each other, as stage `validate` does it.",
        causes=("See the finding: a key, a type or a contradiction, with its path.",),
        look=("ansible-playbook linerate.rdma.validate",),
        remedy="Correct the key that is named, and run again.",
    ),
    "stage.run": Explanation(
        means=(
            "The stage did not run, since an earlier gate is closed. What could not be proven there is what this stage"
            " builds on."
        ),
        measured="The gates of the stages before it in this run.",
        causes=("The earlier stage found something: its findings come first.",),
        look=("ansible-playbook linerate.rdma.site",),
        remedy=(
            "Correct what the earlier stage found, or waive it with a reason; then run again, or go on from there with"
            " `-e rdma_from=STAGE`."
        ),
    ),
    "teardown.drop_in": Explanation(
        means=(
            "The drop-in of containerd's unit is still on a node, or it is not known whether containerd runs"
            " without it."
        ),
        measured=(
            "The file on the node after the teardown. It is emptied, containerd is restarted, and then it is removed:"
            " one that is gone is not in use."
        ),
        causes=(
            "The node is reached by an observer now, which changes nothing.",
            (
                "The node did not answer, when the file was to be removed or when containerd was to be restarted"
                " (unknown)."
            ),
        ),
        look=("systemctl cat containerd",),
        remedy="Bring the node back, run the command of the finding on it, and run the teardown again.",
    ),
    "teardown.kernel_arguments": Explanation(
        means=(
            "Kernel arguments of the collection are still set for the next boot of a node, or it is not known whether"
            " they are."
        ),
        measured="What the module kernel_arguments has added and not taken back, by its own files on the node.",
        causes=(
            "The node is reached by an observer now, which changes nothing.",
            "The node did not answer (unknown).",
            "The tool of the boot loader failed (unknown): its own words are in the finding.",
        ),
        look=(f"cat /{DROP_IN} /{RECORD}", "cat /proc/cmdline"),
        remedy=(
            "Bring the node back and run the teardown again, or take them back by the command of the finding. They go"
            " with the next boot."
        ),
    ),
    "teardown.object": Explanation(
        means="An object of the collection still exists.",
        measured="Each object with the label of the collection, and its finalizers. Of a namespace, all objects in it.",
        causes=(
            "A finalizer whose owner is gone.",
            (
                "A namespace of the collection has objects that the collection did not make. They would go with it, so"
                " it was not deleted."
            ),
            "The user may not list all that a namespace has (unknown), or may not delete the object.",
            "A task that takes objects back has not said what became of them (unknown).",
        ),
        look=(
            (
                "kubectl get sriovnetworknodepolicies,network-attachment-definitions -A -l"
                " app.kubernetes.io/managed-by=linerate.rdma"
            ),
            "kubectl get namespace NAMESPACE -o yaml",
            "kubectl api-resources --verbs=list --namespaced -o name",
        ),
        remedy=(
            "See who holds it: the finalizer that is named, or objects of others, which are moved or deleted first."
            " Then run the teardown again."
        ),
    ),
    "teardown.operator": Explanation(
        means="A Deployment still runs the SR-IOV network operator.",
        measured="Deployments in all namespaces that run it.",
        causes=("It was installed by another hand: Helm takes back only the release that it made.",),
        look=(
            "helm list -A",
            "kubectl get deployments -A",
        ),
        remedy="Remove it the way it was installed.",
    ),
    "teardown.roll": Explanation(
        means="A MachineConfigPool that lost an object of the collection is not through its roll.",
        measured="The pool's machines on its wanted configuration.",
        causes=(
            "A node hangs in its drain, or does not come back.",
            "Something else changed MachineConfigs at the same time.",
        ),
        look=(
            "oc get machineconfigpools",
            "oc logs -n openshift-machine-config-operator -l k8s-app=machine-config-daemon",
        ),
        remedy="See the machine-config-daemon's log on the node that hangs, then run the teardown again.",
    ),
    "teardown.settings": Explanation(
        means=(
            "It is not known whether the files by which the module kernel_settings sets a node at each boot are gone."
        ),
        measured="What the module kernel_settings reported of the node.",
        causes=("The node did not answer.", "The user may not write on the node."),
        look=("ls /etc/sysctl.d/90-linerate-rdma.conf /etc/tmpfiles.d/linerate-rdma.conf",),
        remedy="Bring the node back, and run the teardown again; or remove the two files.",
    ),
    "teardown.stays": Explanation(
        means="An operator, a definition or a Subscription stays, on purpose: others may use it.",
        measured="Helm releases and OLM's objects of the collection, and objects of the definitions.",
        causes=(
            "`teardown_operator` is not set.",
            "Objects of others are left, or other operators need it.",
        ),
        look=(
            "helm list -A",
            "kubectl get crd",
        ),
        remedy=(
            "Where nobody needs it, set `teardown_operator: true`, or remove it by the commands of the finding, in"
            " their order."
        ),
    ),
    "teardown.virtual_functions": Explanation(
        means="Virtual functions or their resource are left on a node, or nobody looked.",
        measured="SriovNetworkNodeState and allocatable of the node after the policies are gone.",
        causes=(
            "A pod still holds one.",
            "The config daemon failed, or the node waits for its turn.",
            "Another policy makes them.",
        ),
        look=(
            "kubectl describe node NODE",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon",
        ),
        remedy="See the config daemon's log on the node, end pods that hold functions, and run the teardown again.",
    ),
}
