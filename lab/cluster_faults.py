# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the cluster plane, injected for real, each with its way back: all that are neither in fabric_faults.py
nor in hca_faults.py."""

from __future__ import annotations

import signal
import typing

from dev.steps import StepError

from . import controlplane, feature_discovery, objects, olm
from .bmc import server
from .fault import Action, Fault, Target
from .planes import Lab
from .processes import wait_until

#: seconds that a fault waits for what it strikes
_THERE_LIMIT = 180.0
#: seconds for each answer of a slow BMC
_SLOW_BMC = 30.0
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


def _on_worker(lab: Lab, worker: str, script: str) -> None:
    lab.agent(worker).check(script)


def _power_off(lab: Lab, target: Target) -> str:
    lab.processes.stop(lab.worker(target.worker).name)
    return f"{target.worker} has no power"


def _power_on(lab: Lab, target: Target) -> str:
    lab.boot(target.worker)
    return f"{target.worker} has booted"


def _iommu(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        lab.switch_iommu(target.worker, on)
        return f"{target.worker} has booted {'with' if on else 'without'} an IOMMU"

    return act


def _bmc_off(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).stop()
    return f"the BMC of {target.worker} is dead"


def _change_password(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).change_password()
    return f"the BMC of {target.worker} has another password"


def _slow_bmc(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).slow_down(_SLOW_BMC)
    return f"the BMC of {target.worker} takes {_SLOW_BMC:.0f} s for each answer"


def _expire_bmc(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).expire(lab.authority)
    return f"the certificate of the BMC of {target.worker} has expired"


def _lock_bmc(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        lab.bmc(target.worker).alter(lambda bios: bios.lock(on))
        return f"the BMC of {target.worker} is {'locked' if on else 'unlocked'}"

    return act


def _contend(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        lab.bmc(target.worker).contend(on)
        return f"{'somebody else changes' if on else 'nobody else changes'} what waits in the BIOS of {target.worker}"

    return act


def _hold_bios(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).alter(lambda bios: bios.hold())
    return f"a job holds the BIOS of {target.worker}"


def _release_bios(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).alter(lambda bios: bios.release())
    return f"no job holds the BIOS of {target.worker}"


def _sriov(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        bmc = lab.bmc(target.worker)

        def switch(bios: server.Bios) -> None:
            bios.attributes[bmc.worker.bmc.sriov] = "Enabled" if on else "Disabled"

        bmc.alter(switch)
        return f"SR-IOV is {'on' if on else 'off'} in the BIOS of {target.worker}"

    return act


def _stubborn_bios(lab: Lab, target: Target) -> str:
    bmc = lab.bmc(target.worker)
    bmc.keep_settings((bmc.worker.bmc.sriov,))
    return f"the BIOS of {target.worker} says yes to {bmc.worker.bmc.sriov}, and does not take it"


def _willing_bios(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).keep_settings(())
    return f"the BIOS of {target.worker} takes what it is given"


def _huge_pages(mode: str) -> Action:
    def act(lab: Lab, target: Target) -> str:
        _on_worker(lab, target.worker, f"echo {mode} > /sys/kernel/mm/transparent_hugepage/enabled")
        return f"{target.worker}: transparent hugepages are {mode}"

    return act


def _bmc_on(lab: Lab, target: Target) -> str:
    bmc = lab.bmc(target.worker)
    bmc.stop()
    bmc.start()
    return f"the BMC of {target.worker} serves"


def _freeze(lab: Lab, target: Target) -> str:
    lab.processes.signal(lab.worker(target.worker).name, signal.SIGSTOP)
    return f"{target.worker} hangs"


def _thaw(lab: Lab, target: Target) -> str:
    lab.processes.signal(lab.worker(target.worker).name, signal.SIGCONT)
    return f"{target.worker} goes on"


def _stop_api(lab: Lab, _target: Target) -> str:
    lab.processes.stop("kube-apiserver")
    return "the API server is gone"


def _start_api(lab: Lab, _target: Target) -> str:
    controlplane.start_api(lab.description, lab.folder, lab.processes, lab.authority)
    return "the API server serves"


def _restart_api(lab: Lab, target: Target) -> str:
    _stop_api(lab, target)
    return _start_api(lab, target)


def _storage_link(state: str) -> Action:
    def act(lab: Lab, target: Target) -> str:
        netdev = lab.description.sriov.netdev
        _on_worker(lab, target.worker, f"ip link set {netdev} {state}")
        return f"{target.worker} {netdev} is {state}"

    return act


def _limit_functions(rate: int) -> Action:
    """The rate of each VF, in Mb/s; 0 is no limit. The emulated NIC takes it and does not keep to it."""

    def act(lab: Lab, target: Target) -> str:
        netdev = lab.description.sriov.netdev
        numbers = f"$(seq 0 $(($(cat /sys/class/net/{netdev}/device/sriov_numvfs) - 1)))"
        _on_worker(
            lab,
            target.worker,
            f"for number in {numbers}; do ip link set {netdev} vf $number max_tx_rate {rate} || exit 1; done",
        )
        return f"the VFs of {target.worker} {netdev} have {f'a limit of {rate} Mb/s' if rate else 'no limit'}"

    return act


#: what RDMA on the host gets, in steady figures: what soft RDMA reaches by itself varies threefold
_STEADY, _SLOW = "12mbit", "3mbit"


def _on_functions(lab: Lab, target: Target, functions: typing.Sequence[str], commands: str) -> None:
    """Run shell commands for each network interface of these functions of the storage NIC that the host has, which is
    ``$netdev`` in them."""
    netdev = lab.description.sriov.netdev
    places = {"pf": f"/sys/class/net/{netdev}/device/net/*", "vf": f"/sys/class/net/{netdev}/device/virtfn*/net/*"}
    folders = " ".join(places[one] for one in functions)
    _on_worker(
        lab,
        target.worker,
        f'for folder in {folders}; do [ -e "$folder" ] || continue; netdev=${{folder##*/}}; {commands}; done',
    )


def _limited(rate: str) -> str:
    return f'tc qdisc replace dev "$netdev" root tbf rate {rate} burst 16kb latency 400ms || exit 1'


def _host_rdma_on(lab: Lab, target: Target) -> str:
    add = 'ip link set "$netdev" up && rdma link add "rxe-$netdev" type rxe netdev "$netdev" || exit 1'
    _on_functions(lab, target, ("pf", "vf"), f"{add}; {_limited(_STEADY)}")
    return (
        f"{target.worker}: the storage NIC and its virtual functions have RDMA devices on the host, which send"
        f" {_STEADY}"
    )


def _host_rdma_off(lab: Lab, target: Target) -> str:
    # a function that a pod had since has lost its device on the way
    remove = 'rdma link delete "rxe-$netdev" 2> /dev/null; tc qdisc del dev "$netdev" root 2> /dev/null; true'
    _on_functions(lab, target, ("pf", "vf"), remove)
    return f"{target.worker}: the storage NIC has no RDMA device on the host"


def _host_rate(function: str, rate: str) -> Action:
    """A limit of one kind of function on the host, which has RDMA devices there (``host-rdma``)."""

    def act(lab: Lab, target: Target) -> str:
        _on_functions(lab, target, (function,), _limited(rate))
        return f"{target.worker}: the {function.upper()} of the storage NIC sends {rate} at most on the host"

    return act


def _in_pods(*commands: str, otherwise: str = "exit 1") -> Action:
    """Run commands in the network namespace of each of a worker's pods that has a VF, which is net1 there.

    :param otherwise: what the shell does when one of them fails
    """

    def act(lab: Lab, target: Target) -> str:
        inside = "; ".join(f'nsenter --net="$pod" {command} || {otherwise}' for command in commands)
        script = (
            f'for pod in /run/netns/*; do if nsenter --net="$pod" ip link show net1 > /dev/null 2>&1; then {inside};'
            " fi; done"
        )
        _on_worker(lab, target.worker, script)
        return f"{target.worker}: {'; '.join(commands)}"

    return act


def _back_in_pods(*commands: str) -> Action:
    """The way back: a pod that never had the fault, or is gone, needs none."""
    return _in_pods(*(f"{command} 2> /dev/null" for command in commands), otherwise="true")


def _script(script: str, said: str) -> Action:
    def act(lab: Lab, target: Target) -> str:
        _on_worker(lab, target.worker, script)
        return f"{target.worker}: {said}"

    return act


def _thaw_kubelet(lab: Lab, target: Target) -> str:
    _on_worker(lab, target.worker, "pkill -CONT -x kubelet")
    lab.wait_workers(lab.build())
    return f"{target.worker}: its kubelet goes on, and it is Ready"


def _signal_daemon(name: str) -> Action:
    """Send a signal to the operator's config daemon on a worker."""

    def act(lab: Lab, target: Target) -> str:
        _on_worker(lab, target.worker, f"pkill -{name} -f '^(/usr/bin/)?sriov-network-config-daemon'")
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
#: waits until data flows between a server of ib_write_bw and its client, then kills the server: the client prints its
#: table all the same
_KILL_SERVER = r"""
end=$(($(date +%%s) + %d))
while [ "$(date +%%s)" -lt "$end" ]; do
  for pid in $(pgrep -x ib_write_bw); do
    # the last word of a client is its server's address
    case "$(tr '\0' '\n' 2>/dev/null < "/proc/$pid/cmdline" | tail -n 1)" in *.*.*.*) continue ;; esac
    received=$(awk '$1 == "net1:" { print $2 }' "/proc/$pid/net/dev" 2>/dev/null)
    [ -n "$received" ] || continue
    eval "first=\${first_$pid:=$received}"
    if [ $((received - first)) -gt 200000 ]; then kill -KILL "$pid"; exit; fi
  done
  sleep 0.05
done
echo "no server of ib_write_bw received data" >&2
exit 1
"""


def _kill_server(lab: Lab, target: Target) -> str:
    lab.agent(target.worker).check(_KILL_SERVER % _THERE_LIMIT, limit=_THERE_LIMIT + 30)
    return f"{target.worker}: a server of ib_write_bw was killed while it received"


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


def _nothing(_lab: Lab, _target: Target) -> str:
    return "nothing to take back"


_SLOW_OUT = "tc qdisc replace dev net1 root tbf rate 3mbit burst 64kb latency 400ms"
_SLOW_IN = (
    "tc qdisc replace dev net1 handle ffff: ingress",
    "tc filter add dev net1 parent ffff: matchall action police rate 3mbit burst 256k conform-exceed drop",
)
_FAST_OUT, _FAST_IN = "tc qdisc del dev net1 root", "tc qdisc del dev net1 ingress"
_FIREWALL = "iptables -w"
_LIMITS, _LOW = "/etc/systemd/system/containerd.service.d", "zz-low.conf"
_RESTART = "systemctl daemon-reload && systemctl restart containerd"
# iWARP runs over TCP; RoCE would be UDP port 4791
_RDMA = "INPUT -i net1 -p tcp -j DROP"

CLUSTER_FAULTS = (
    Fault("worker-off", "a worker loses power; taken back, it boots anew", ("worker",), _power_off, _power_on),
    Fault(
        "iommu-off",
        "the IOMMU of a worker is switched off in its BIOS, and its BMC resets it",
        ("worker",),
        _iommu(False),
        _iommu(True),
    ),
    Fault("bmc-dead", "the BMC of a worker is dead", ("worker",), _bmc_off, _bmc_on),
    Fault("bmc-password", "the BMC of a worker has another password", ("worker",), _change_password, _bmc_on),
    Fault("bmc-slow", f"the BMC of a worker takes {_SLOW_BMC:.0f} s for each answer", ("worker",), _slow_bmc, _bmc_on),
    Fault("bmc-expired", "the certificate of a worker's BMC has expired", ("worker",), _expire_bmc, _bmc_on),
    Fault("bmc-locked", "the BMC of a worker is in lockdown", ("worker",), _lock_bmc(True), _lock_bmc(False)),
    Fault(
        "bmc-job",
        "a job of somebody else holds the BIOS of a worker, and never ends",
        ("worker",),
        _hold_bios,
        _release_bios,
    ),
    Fault(
        "bmc-contended",
        "somebody else changes the settings of a worker's BMC before each write",
        ("worker",),
        _contend(True),
        _contend(False),
    ),
    Fault("sriov-off", "SR-IOV is switched off in the BIOS of a worker", ("worker",), _sriov(False), _sriov(True)),
    Fault(
        "bios-stubborn",
        "the BIOS of a worker says yes to SR-IOV, and does not take it at a reset",
        ("worker",),
        _stubborn_bios,
        _willing_bios,
    ),
    Fault("thp", "transparent hugepages of a worker are off", ("worker",), _huge_pages("never"), _huge_pages("always")),
    Fault("worker-frozen", "a worker hangs: its links are up, it does not answer", ("worker",), _freeze, _thaw),
    Fault("api-down", "the API server is gone", (), _stop_api, _start_api),
    Fault("api-restart", "the API server is restarted; nothing to take back", (), _restart_api, _start_api),
    Fault(
        "vf-down",
        "the PF of the storage NIC is down, so its VFs lose their carrier",
        ("worker",),
        _storage_link("down"),
        _storage_link("up"),
    ),
    Fault(
        "slow-node",
        "the VFs in a worker's pods send and receive 3 Mb/s at most",
        ("worker",),
        _in_pods(_SLOW_OUT, *_SLOW_IN),
        _back_in_pods(_FAST_OUT, _FAST_IN),
    ),
    Fault(
        "vf-limited",
        "the PF lets each VF of a worker send 3 Mb/s at most",
        ("worker",),
        _limit_functions(3),
        _limit_functions(0),
    ),
    Fault(
        "host-rdma",
        "the storage NIC and its virtual functions have RDMA devices on a worker itself, as HCAs do",
        ("worker",),
        _host_rdma_on,
        _host_rdma_off,
    ),
    Fault(
        "slow-pf",
        "the storage NIC of a worker with host-rdma sends 3 Mb/s at most",
        ("worker",),
        _host_rate("pf", _SLOW),
        _host_rate("pf", _STEADY),
    ),
    Fault(
        "slow-vf",
        "the VFs that no pod has of a worker with host-rdma send 3 Mb/s at most",
        ("worker",),
        _host_rate("vf", _SLOW),
        _host_rate("vf", _STEADY),
    ),
    Fault(
        "slow-direction",
        "the VFs in a worker's pods send 3 Mb/s at most",
        ("worker",),
        _in_pods(_SLOW_OUT),
        _back_in_pods(_FAST_OUT),
    ),
    Fault(
        "rdma-dropped",
        "what arrives for RDMA at the VFs in a worker's pods is dropped in silence",
        ("worker",),
        _in_pods(f"{_FIREWALL} -I {_RDMA}"),
        _back_in_pods(f"{_FIREWALL} -D {_RDMA}"),
    ),
    Fault(
        "address-gone",
        "the VFs in a worker's pods lose their address; nothing to take back",
        ("worker",),
        _in_pods("ip addr flush dev net1"),
        _nothing,
    ),
    Fault(
        "server-killed",
        "a server of ib_write_bw is killed while it receives; nothing to take back",
        ("worker",),
        _kill_server,
        _nothing,
    ),
    Fault(
        "pod-evicted", "a pod of stage bandwidth is evicted; nothing to take back", ("worker",), _evict_pod, _nothing
    ),
    Fault(
        "daemon-killed",
        "the operator's config daemon is killed; its kubelet starts it again",
        ("worker",),
        _signal_daemon("KILL"),
        _nothing,
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
        _nothing,
    ),
    Fault(
        "kubelet-frozen",
        "the kubelet of a worker hangs, and its pods go on",
        ("worker",),
        _script("pkill -STOP -x kubelet", "its kubelet hangs"),
        _thaw_kubelet,
    ),
    Fault(
        "memlock-low",
        "containerd of a worker lets a container lock 8 MiB, whatever earlier drop-ins say",
        ("worker",),
        _script(
            f"mkdir -p {_LIMITS} && printf '[Service]\\nLimitMEMLOCK=8M\\n' > {_LIMITS}/{_LOW} && {_RESTART}",
            "containers may lock 8 MiB",
        ),
        _script(f"rm -f {_LIMITS}/{_LOW} && {_RESTART}", "the limit is what other drop-ins say"),
    ),
    Fault(
        "clock-ahead",
        "the clock of a worker is set 3 hours ahead",
        ("worker",),
        _script("date -s '+3 hours'", "its clock is 3 h ahead"),
        _script("date -s '3 hours ago'", "its clock is right again"),
    ),
    Fault(
        "umad-absent",
        "the tools of a fabric open a worker's device nodes of ib_umad, of which its kernel has none, and not the"
        " simulated fabric",
        ("worker",),
        # the lab's wrapper around the tools looks for it, on the worker and in its observer
        _script("touch /run/lab/without-umad", "its tools find no device node of ib_umad"),
        _script("rm -f /run/lab/without-umad", "its tools ask the simulated fabric"),
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
