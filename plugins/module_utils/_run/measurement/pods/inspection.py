# SPDX-License-Identifier: GPL-3.0-or-later

"""Inspects a pod: finds the RDMA device of its virtual function, its address, its rail and its rates."""

from __future__ import annotations

import dataclasses
import typing

from ...._check.bandwidth.addresses import why_outside
from ...._model.base.errors import wrap_unforeseen
from ...._model.base.operand import OperandError, require_operand
from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import carries_rdma, is_interface_moved
from ...._model.intent.profiles import list_rails as fabric_rails
from ...._model.kubernetes.objects import CommandResult
from ...._model.measurement.bandwidth import RdmaPod
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.shell import Clock, Shell
from ...._parse.kubernetes.networks import multus
from ...._parse.kubernetes.resource import ResourceError
from ...._parse.pods import probe as pod_probe
from ...._parse.pods.failure import Failure
from ...._render.measurement import commands
from ..client_server import find_failure
from ..measuring_plan import Plan, may_return

#: seconds of the look into a pod, at least
PROBE_LIMIT = 30
#: the part of ``pod_seconds`` that the look into a pod may take: who waits longer for pods has slower nodes
_LOOK_PART = 0.2
#: attempts of that look whose connection broke: the node may be lost, and not the API server
_LOOKS = 3


class PodInspector:
    """An inspector of the ready pods of one run: it finds their RDMA devices, addresses, rails and rates."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        open_shell: typing.Callable[[RdmaPod, str], Shell],
        await_api: typing.Callable[[], None],
        find_fate: typing.Callable[[RdmaPod], typing.Optional[Failure]],
    ) -> None:
        """Prepare the inspections of the pods of a run; no shell is opened yet.

        :param plan: fabrics, nodes and settings of the measurement
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param open_shell: function that gets a pod and the PCI address of its function (empty if unknown), and returns
            a shell in the pod
        :param await_api: function without arguments that waits until the API server answers
        :param find_fate: function that gets a pod and returns its failure if it is gone; None if it is not gone
        """
        self._plan = plan
        self._clock = clock
        self._open_shell = open_shell
        self._await_api = await_api
        self._find_fate = find_fate

    def inspect(self, fabric: Fabric, item: RdmaPod, found: Resource) -> tuple[RdmaPod, float]:
        """Inspect a ready pod: find the RDMA device of its virtual function, its address, its rail and its rates. If
        this fails, also with an unexpected exception, the pod gets the reason as its error.

        :param fabric: fabric of the pod
        :param item: pod that is ready
        :param found: object of the pod, as the API server returned it
        :returns: the pod with the results, and the duration of the inspection in seconds
        """
        begun = self._clock()
        try:
            item = self._read(fabric, item, found)
        except Exception as error:
            item = dataclasses.replace(item, error=str(wrap_unforeseen(error, "the inspection of the pod")))
        return item, self._clock() - begun

    def _read(self, fabric: Fabric, item: RdmaPod, found: Resource) -> RdmaPod:
        """Return the pod with the RDMA device of its virtual function, its address, its rail and its rates, or with the
        error.

        :param fabric: fabric of the pod
        :param item: pod that is ready
        :param found: object of the pod, as the API server returned it
        """
        if item.error:
            return item
        network = (found["metadata"].get("annotations") or {}).get("k8s.v1.cni.cncf.io/networks", "")
        try:
            interface, address, pci = (
                multus.network_interface(found, network) if network else multus.own_interface(found)
            )
            address = require_operand(address, f"pod {item.name}: the address")
            outside = why_outside(fabric, address) if network else ""
            if outside:
                return dataclasses.replace(item, error=outside, cause="address")
            pci = pci or self._find_shared_function(fabric, item.node)
            greeting = self._read_greeting(item, pci or "")
        except (ResourceError, ApiError, OperandError) as error:
            return dataclasses.replace(item, error=str(error))
        failure = find_failure(greeting)
        if failure is not None:
            failure = self._find_fate(item) or failure
            silent = failure.kind == "hang"
            evidence = (
                (f"the shell in the pod did not respond for {self._look_seconds:.0f} s") if silent else failure.evidence
            )
            return dataclasses.replace(
                item, error=f"the pod could not be inspected: {evidence}", cause="silent" if silent else failure.kind
            )
        probe = pod_probe.parse(greeting.output)
        device, problem = None, ""
        try:
            device = require_operand(probe.device(interface, pci), f"pod {item.name}: the RDMA device")
        except OperandError as error:
            return dataclasses.replace(item, error=str(error))
        except pod_probe.ProbeError as error:
            problem = str(error)
        tcp = device is None and not carries_rdma(fabric)
        lacks = [tool for tool in probe.missing if tool in (commands.TCP_NEEDED if tcp else commands.NEEDED)]
        if lacks:
            return dataclasses.replace(
                item, error=f"the image {fabric.pods.image} does not contain {', '.join(lacks)}", cause="no_tool"
            )
        if problem and not tcp:
            return dataclasses.replace(item, error=problem, cause="no_device")
        pci = pci or next(iter(probe.addresses), "")
        bound = probe.binding(pci)
        return self._put_on_rail(
            fabric,
            dataclasses.replace(
                item,
                device=device,
                address=address,
                pci=pci or None,
                interface=interface,
                rate_gbps=probe.rates.get(device or ""),
                pcie_gbps=probe.pcie.get(pci),
                physical_function=probe.functions.get(pci),
                cpus=bound.cpus,
                binding=bound.text,
                far_cpus=bound.far,
            ),
        )

    def _read_greeting(self, item: RdmaPod, pci: str) -> CommandResult:
        """Read the first output of the pod's shell, which describes the pod. If the connection is lost, wait for the
        API server and try again.

        :param item: pod that is ready
        :param pci: PCI address of the pod's function; empty if unknown
        :raises ApiError: the pod does not exist or does not run
        """
        for left in reversed(range(_LOOKS)):
            try:
                greeting = self._open_shell(item, pci).wait(self._look_seconds)
                failure = find_failure(greeting)
                if not left or failure is None or failure.kind != "exec_lost":
                    break
            except ApiError as error:
                if not left or not may_return(error):
                    raise
            self._await_api()
        return greeting

    @property
    def _look_seconds(self) -> float:
        """Return the time limit for the first output of a pod's shell, in seconds."""
        return max(PROBE_LIMIT, _LOOK_PART * self._plan.pod_seconds)

    def _find_shared_function(self, fabric: Fabric, node: str) -> typing.Optional[str]:
        """Return the PCI address of the function whose RDMA device all pods of a node share. Return None for profiles
        without shared devices, and if the function is not known.

        The address comes from the node, because the interface in such a pod has no PCI address.

        :param node: name of the node
        """
        return (
            next(iter(self._plan.rails.get(fabric.name, {}).get(node, {})), None)
            if fabric.profile == "rdma_shared"
            else None
        )

    def _put_on_rail(self, fabric: Fabric, item: RdmaPod) -> RdmaPod:
        """Return the pod with the number of its rail. The pod gets an error if its HCA is not on a rail of the fabric.
        On a fabric with a single rail, a pod whose HCA is not known is accepted unchanged.

        :param item: the inspected pod
        """
        rails = self._plan.rails.get(fabric.name, {}).get(item.node, {})
        # a function that a pod gets as a whole is the HCA itself
        function = item.physical_function or (
            item.pci if fabric_rails(fabric).stop > 1 or is_interface_moved(fabric) else None
        )
        if fabric_rails(fabric).stop == 1 and not (rails and function):
            return item
        if function in rails:
            return dataclasses.replace(item, rail=rails[function])
        error = f"its virtual function {item.pci} belongs to {item.physical_function or 'no HCA that sysfs reports'}"
        return dataclasses.replace(
            item, error=f"{error}; HCAs of this fabric on the node: {', '.join(rails) or 'none known'}", cause="rail"
        )
