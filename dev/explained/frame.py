# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings that all stages share, and of those of the teardown. Check ids: ``*.error``, ``*.run``,
``*.intent``, ``teardown.*``.
"""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import DROP_IN, RECORD

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "stage.error": Explanation(
        means=(
            "A task of the stage failed, so the rest of the stage was not checked. A waiver cannot cover this finding,"
            " because the stage has verified nothing."
        ),
        measured="The failed task and its error, which the finding shows under `measured`.",
        causes=(
            "The API server, a node or a tool reported an error or did not respond. The finding contains its message.",
            "In check mode, the task requires changes that an earlier stage would make.",
            (
                "The check raised an exception on the data of a node. The finding lists this node, or all nodes that"
                " may be the cause."
            ),
            "This collection has a defect. In this case the finding says so.",
        ),
        look=("ansible-playbook linerate.rdma.site -vv",),
        remedy=(
            "Correct the cause in the finding, then run the stage again. If the finding reports a defect in this"
            " collection, report the defect."
        ),
    ),
    "stage.intent": Explanation(
        means="The intent is invalid, so the stage did not start. The stage changed nothing.",
        measured="The variables, compared with the schema and with each other, as in stage `validate`.",
        causes=("A key, a type or a contradiction. The finding contains the path.",),
        look=("ansible-playbook linerate.rdma.validate",),
        remedy="Correct the key in the subject of the finding, then run the stage again.",
    ),
    "stage.run": Explanation(
        means=(
            "The stage did not run, because an earlier gate is closed. This stage depends on results that the earlier"
            " stage could not verify."
        ),
        measured="The gates of the earlier stages in this run.",
        causes=("The earlier stage has findings that close its gate. The report lists these findings first.",),
        look=("ansible-playbook linerate.rdma.site",),
        remedy=(
            "Correct the findings of the earlier stage, or waive them with a reason. Then start a new run, or resume"
            " the run at that stage with `-e rdma_from=STAGE`."
        ),
    ),
    "teardown.drop_in": Explanation(
        means=(
            "The drop-in for the containerd unit is still on a node, or it is unknown whether containerd runs without"
            " it."
        ),
        measured=(
            "The file on the node after the teardown. The teardown empties the file, restarts containerd, and then"
            " removes the file. Therefore a file that is gone is no longer in use."
        ),
        causes=(
            "The run now reaches the node by an observer pod, which changes nothing on the node.",
            "The node did not respond when the teardown removed the file or restarted containerd (unknown).",
        ),
        look=("systemctl cat containerd",),
        remedy="Make the node reachable, run the command in the finding on it, then run the teardown again.",
    ),
    "teardown.kernel_arguments": Explanation(
        means=(
            "Kernel arguments of this collection are still set for the next boot of a node, or it is unknown whether"
            " they are set."
        ),
        measured=(
            "The kernel arguments that the module kernel_arguments added and did not remove, read from its own files on"
            " the node."
        ),
        causes=(
            "The run now reaches the node by an observer pod, which changes nothing on the node.",
            "The node did not respond (unknown).",
            "The tool of the boot loader failed (unknown). The finding contains its error.",
        ),
        look=(f"cat /{DROP_IN} /{RECORD}", "cat /proc/cmdline"),
        remedy=(
            "Make the node reachable and run the teardown again, or remove the arguments with the command in the"
            " finding. The next boot is then without them."
        ),
    ),
    "teardown.object": Explanation(
        means="An object of this collection still exists.",
        measured=(
            "Each object with the label of this collection, and its finalizers. For a namespace, all objects in it."
        ),
        causes=(
            "The object has a finalizer whose controller no longer exists.",
            (
                "A namespace of this collection contains objects that this collection did not create. Deleting the"
                " namespace would delete these objects, so the teardown did not delete it."
            ),
            "The user may not list all objects in a namespace (unknown), or may not delete the object.",
            "A task that deletes objects did not report its result (unknown).",
            "The user may not look for MachineConfigs and KubeletConfigs (unknown).",
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
            "Check what prevents the deletion: the finalizer in the finding, or objects of other users. Move or delete"
            " these objects first, then run the teardown again."
        ),
    ),
    "teardown.operator": Explanation(
        means="A Deployment still runs the SR-IOV network operator.",
        measured="The Deployments in all namespaces that run the operator.",
        causes=(
            "The operator was not installed by this collection. Helm removes only the release that it installed.",
            "The operator still drains or configures nodes, so the teardown leaves it.",
        ),
        look=(
            "helm list -A",
            "kubectl get deployments -A",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A",
        ),
        remedy=(
            "Wait until the operator has finished on all nodes, or remove an operator of another tool with that tool."
            " Then run the teardown again."
        ),
    ),
    "teardown.roll": Explanation(
        means=(
            "A MachineConfigPool has not finished its rollout after the teardown deleted an object of this collection."
        ),
        measured="The machines of the pool that have the desired configuration.",
        causes=(
            "The drain of a node does not finish, or a node does not return after its reboot.",
            "Another user or controller changed MachineConfigs at the same time.",
        ),
        look=(
            "oc get machineconfigpools",
            "oc logs -n openshift-machine-config-operator -l k8s-app=machine-config-daemon --tail=-1",
        ),
        remedy=(
            "Read the log of the machine-config-daemon on the affected node, correct the error, then run the teardown"
            " again."
        ),
    ),
    "teardown.settings": Explanation(
        means=(
            "It is unknown whether the files of the module kernel_settings, which set a node at each boot, are gone."
        ),
        measured="The result of the module kernel_settings on the node.",
        causes=("The node did not respond.", "The user has no permission to write on the node."),
        look=("ls /etc/sysctl.d/90-linerate-rdma.conf /etc/tmpfiles.d/linerate-rdma.conf",),
        remedy="Make the node reachable and run the teardown again, or remove the two files on the node as root.",
    ),
    "teardown.stays": Explanation(
        means="An operator, a CRD or another object was intentionally not removed, because other users may use it.",
        measured="The Helm releases and the OLM objects of this collection, and the objects of the CRDs.",
        causes=(
            "`teardown_operator` is not set.",
            "Objects of other users remain, or other operators require it.",
            "It is of another intent, or another intent needs it.",
            "The SR-IOV operator still drains or configures nodes.",
            "It is a health check that stays paused, because nodes that it watches are not Ready or in a roll.",
            "A user copied an object of this collection with its label.",
        ),
        look=(
            "kubectl get network-attachment-definitions -A -o yaml --show-managed-fields",
            "helm list -A",
            "kubectl get crd",
        ),
        remedy=(
            "If it is no longer needed, set `teardown_operator: true` and run the teardown again. Or run the commands"
            " in the finding, in their order."
        ),
    ),
    "teardown.virtual_functions": Explanation(
        means="Virtual functions or their resource remain on a node, or the run did not check this.",
        measured=(
            "The SriovNetworkNodeState and the allocatable resources of the node after the removal of the policies."
        ),
        causes=(
            "A pod still holds a virtual function.",
            "The config daemon failed, or the node waits until other nodes have finished.",
            "Another policy creates the virtual functions.",
        ),
        look=(
            "kubectl describe node NODE",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon --tail=-1",
        ),
        remedy=(
            "Read the log of the config daemon on the node, end the pods that hold virtual functions, then run the"
            " teardown again."
        ),
    ),
}
