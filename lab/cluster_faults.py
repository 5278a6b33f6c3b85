# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the cluster: the API server, containers and services of the nodes, operators and their objects. Each is
injected for real, and has its way back."""

from __future__ import annotations

import typing

from dev.steps import StepError

from . import controlplane, feature_discovery, objects, olm
from .fault import Action, Fault, Target, on_worker, run_script, take_nothing_back
from .planes import Lab
from .processes import wait_until

#: seconds that a fault waits for what it strikes
_THERE_LIMIT = 180.0
#: pods that the bandwidth stage makes
_PODS = "app.kubernetes.io/managed-by=linerate.rdma,linerate.rdma/fabric"
#: what the webhook of an operator that is gone was asked about
_LEFT = "left-behind"
_NETWORKS = ("sriovnetwork.openshift.io", "sriovnetworks")
_HOOKS = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
#: a field that stage network sets, which came after the first versions of the operator
_NEWER = "maxTxRate"
#: a policy that another tool might have left on the storage NIC
_FOREIGN = "foreign-policy"


def _stop_api(lab: Lab, _target: Target) -> str:
    lab.processes.stop("kube-apiserver")
    return "the API server is gone"


def _start_api(lab: Lab, _target: Target) -> str:
    controlplane.start_api(lab.description, lab.folder, lab.processes, lab.authority)
    return "the API server serves"


def _restart_api(lab: Lab, target: Target) -> str:
    _stop_api(lab, target)
    return _start_api(lab, target)


def _thaw_kubelet(lab: Lab, target: Target) -> str:
    on_worker(lab, target.worker, "pkill -CONT -x kubelet")
    lab.wait_workers(lab.build())
    return f"{target.worker}: its kubelet goes on, and it is Ready"


def _signal_daemon(name: str) -> Action:
    """Send a signal to the operator's config daemon on a worker."""

    def act(lab: Lab, target: Target) -> str:
        on_worker(lab, target.worker, f"pkill -{name} -f '^(/usr/bin/)?sriov-network-config-daemon'")
        return f"{target.worker}: its config daemon got SIG{name}"

    return act


#: the container of a worker's observer, as containerd calls it
_OBSERVER = "observer=$(ctr -n k8s.io containers ls -q 'labels.\"io.kubernetes.container.name\"==observer')"
#: waits until Python runs in the observer, which is a look, then kills the container with all that runs in it
_KILL_OBSERVER = f"""
end=$(($(date +%s) + {_THERE_LIMIT:.0f}))
while [ "$(date +%s)" -lt "$end" ]; do
  {_OBSERVER}
  for name in $observer; do
    for pid in $(ctr -n k8s.io tasks ps "$name" 2>/dev/null | awk 'NR > 1 {{ print $1 }}'); do
      case "$(cat "/proc/$pid/comm" 2>/dev/null)" in
        python3*) ctr -n k8s.io tasks kill -a -s SIGKILL "$name"; exit ;;
      esac
    done
  done
  sleep 0.05
done
echo "no observer is looking" >&2
exit 1
"""


def _evict_pod(lab: Lab, target: Target) -> str:
    """By the eviction API, as a drain does."""
    pods = _client(lab).resources.get(api_version="v1", kind="Pod")
    found: list[typing.Any] = []

    def running() -> bool:
        items = pods.get(label_selector=_PODS).items
        found[:] = [pod for pod in items if pod.spec.nodeName == target.worker and pod.status.phase == "Running"]
        return bool(found)

    if not wait_until(running, _THERE_LIMIT):
        raise StepError(f"{target.worker} runs no pod of stage bandwidth", "inject the fault while the stage measures")
    name, namespace = found[0].metadata.name, found[0].metadata.namespace
    # a drain may cut the pod's own 30 s short as well; in these, a measurement would come to its end
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": {"gracePeriodSeconds": 1},
    }
    pods.subresources["eviction"].create(name=name, namespace=namespace, body=body)
    return f"{target.worker}: pod {namespace}/{name} is evicted"


def _keep_discovery_away(lab: Lab, target: Target) -> str:
    feature_discovery.keep_away(lab.authority, lab.worker(target.worker))
    return f"node feature discovery keeps away from {target.worker}, which does not carry {feature_discovery.LABEL}"


def _let_discovery_back(lab: Lab, target: Target) -> str:
    feature_discovery.come_back(lab.authority, lab.worker(target.worker))
    return f"{target.worker} carries {feature_discovery.LABEL}"


def _leave_out_network(lab: Lab, _target: Target) -> str:
    feature_discovery.configure(lab.authority, {"core": {"labelSources": ["all", "-network"]}})
    feature_discovery.await_label(lab.authority, lab.description.workers, there=False)
    return "node feature discovery makes no labels of its source network"


def _take_in_network(lab: Lab, _target: Target) -> str:
    feature_discovery.configure(lab.authority, None)
    feature_discovery.await_label(lab.authority, lab.description.workers)
    return f"all workers carry {feature_discovery.LABEL}"


def _leave_webhook(lab: Lab, _target: Target) -> str:
    group, plural = _NETWORKS
    hook = {
        "name": f"{_LEFT}.{group}",
        "clientConfig": {"service": {"namespace": _LEFT, "name": _LEFT, "path": "/validate"}},
        "rules": [
            {"apiGroups": [group], "apiVersions": ["*"], "resources": [plural], "operations": ["CREATE", "UPDATE"]}
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    objects.apply(
        _client(lab), [{"apiVersion": _HOOKS[0], "kind": _HOOKS[1], "metadata": {"name": _LEFT}, "webhooks": [hook]}]
    )
    return f"webhook {_LEFT} is asked about each of {plural}, and has no Service"


def _remove_webhook(lab: Lab, _target: Target) -> str:
    objects.remove(_client(lab).resources.get(api_version=_HOOKS[0], kind=_HOOKS[1]), [_LEFT])
    return f"webhook {_LEFT} is gone"


def _age_definition(lab: Lab, _target: Target) -> str:
    group, plural = _NETWORKS
    kinds = _client(lab).resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    path = f"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{_NEWER}"
    kinds.patch(
        name=f"{plural}.{group}", body=[{"op": "remove", "path": path}], content_type="application/json-patch+json"
    )
    return f"the definition of {plural} does not know {_NEWER}"


def _renew_definition(lab: Lab, _target: Target) -> str:
    controlplane.apply_base(lab.description, lab.authority)
    return f"the definition of {_NETWORKS[1]} is the operator's own"


def _add_policy(lab: Lab, _target: Target) -> str:
    sriov = lab.description.sriov
    policy = {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": _FOREIGN, "namespace": "sriov-network-operator"},
        "spec": {
            "resourceName": "foreign",
            "nodeSelector": {feature_discovery.LABEL: "true"},
            "numVfs": 4,
            "priority": 99,
            "deviceType": "netdevice",
            "nicSelector": {"vendor": sriov.vendor, "deviceID": sriov.device, "pfNames": [f"{sriov.netdev}#0-3"]},
        },
    }
    objects.apply(_client(lab), [policy])
    return f"SriovNetworkNodePolicy {_FOREIGN} takes VFs 0 to 3 of {sriov.netdev}"


def _remove_policy(lab: Lab, _target: Target) -> str:
    policies = _client(lab).resources.get(api_version="sriovnetwork.openshift.io/v1", kind="SriovNetworkNodePolicy")
    if any(policy.metadata.name == _FOREIGN for policy in policies.get(namespace="sriov-network-operator").items):
        policies.delete(name=_FOREIGN, namespace="sriov-network-operator")
        # one that has started meanwhile keeps the VFs for the other resource: the operator does not start it anew
        pods = _client(lab).resources.get(api_version="v1", kind="Pod")
        pods.delete(namespace="sriov-network-operator", label_selector="app=sriov-device-plugin")
    return f"SriovNetworkNodePolicy {_FOREIGN} is gone"


def _catalog(there: bool) -> Action:
    def act(lab: Lab, _target: Target) -> str:
        if not lab.processes.alive("olm"):
            raise StepError("OLM does not run in this lab", "build/venv/bin/python -m lab olm on")
        if there:
            olm.start_catalog(lab.folder, lab.processes)
            olm.await_catalog(lab.authority, lab.processes)
        else:
            olm.lose_catalog(lab.authority, lab.processes)
        return f"OLM's catalog is {'back' if there else 'gone'}"

    return act


def _client(lab: Lab) -> typing.Any:
    return objects.client(lab.authority.path("admin.kubeconfig"))


_LIMITS, _LOW = "/etc/systemd/system/containerd.service.d", "zz-low.conf"
_RESTART = "systemctl daemon-reload && systemctl restart containerd"

CLUSTER_FAULTS = (
    Fault("api-down", "the API server is gone", (), _stop_api, _start_api),
    Fault("api-restart", "the API server is restarted; nothing to take back", (), _restart_api, _start_api),
    Fault(
        "pod-evicted",
        "a pod of stage bandwidth is evicted; nothing to take back",
        ("worker",),
        _evict_pod,
        take_nothing_back,
    ),
    Fault(
        "daemon-killed",
        "the operator's config daemon is killed; its kubelet starts it again",
        ("worker",),
        _signal_daemon("KILL"),
        take_nothing_back,
    ),
    Fault(
        "daemon-frozen",
        "the operator's config daemon hangs",
        ("worker",),
        _signal_daemon("STOP"),
        _signal_daemon("CONT"),
    ),
    Fault(
        "observer-killed",
        "the container of a worker's observer is killed while it looks; nothing to take back",
        ("worker",),
        lambda lab, target: (
            lab.agent(target.worker).check(_KILL_OBSERVER, limit=_THERE_LIMIT + 30)
            or f"{target.worker}: its observer was killed"
        ),
        take_nothing_back,
    ),
    Fault(
        "kubelet-frozen",
        "the kubelet of a worker hangs, and its pods go on",
        ("worker",),
        run_script("pkill -STOP -x kubelet", "its kubelet hangs"),
        _thaw_kubelet,
    ),
    Fault(
        "memlock-low",
        "containerd of a worker lets a container lock 8 MiB, whatever earlier drop-ins say",
        ("worker",),
        run_script(
            f"mkdir -p {_LIMITS} && printf '[Service]\\nLimitMEMLOCK=8M\\n' > {_LIMITS}/{_LOW} && {_RESTART}",
            "containers may lock 8 MiB",
        ),
        run_script(f"rm -f {_LIMITS}/{_LOW} && {_RESTART}", "the limit is what other drop-ins say"),
    ),
    Fault(
        "clock-ahead",
        "the clock of a worker is set 3 hours ahead",
        ("worker",),
        run_script("date -s '+3 hours'", "its clock is 3 h ahead"),
        run_script("date -s '3 hours ago'", "its clock is right again"),
    ),
    Fault(
        "umad-absent",
        "the tools of a fabric open a worker's device nodes of ib_umad, of which its kernel has none, and not the"
        " simulated fabric",
        ("worker",),
        # the lab's wrapper around the tools looks for it, on the worker and in its observer
        run_script("touch /run/lab/without-umad", "its tools find no device node of ib_umad"),
        run_script("rm -f /run/lab/without-umad", "its tools ask the simulated fabric"),
    ),
    Fault(
        "label-absent",
        "node feature discovery keeps away from a worker, as if it had never been there",
        ("worker",),
        _keep_discovery_away,
        _let_discovery_back,
    ),
    Fault(
        "label-sources",
        "node feature discovery is told to make no labels of its source network",
        (),
        _leave_out_network,
        _take_in_network,
    ),
    Fault(
        "catalog-gone",
        "the server of OLM's catalog is gone, and OLM was started anew since",
        (),
        _catalog(False),
        _catalog(True),
    ),
    Fault(
        "webhook-left",
        "the webhook of an operator that is gone is asked about each SriovNetwork",
        (),
        _leave_webhook,
        _remove_webhook,
    ),
    Fault(
        "definition-older",
        f"the definition of SriovNetwork is one that does not know {_NEWER} yet",
        (),
        _age_definition,
        _renew_definition,
    ),
    Fault(_FOREIGN, "somebody else's policy takes VFs of the storage NIC", (), _add_policy, _remove_policy),
)
