# SPDX-License-Identifier: GPL-3.0-or-later

"""The pod template of a job and its surroundings, as each rule of the linter gets them."""

from __future__ import annotations

import collections
import dataclasses
import re
import typing

from ..._model.base.load_error import Hints
from ..._model.job.job import (
    JobWorkload,
    NetworkRequest,
    PodContainer,
    PodTemplate,
    Variable,
)
from ..._model.job.surroundings import (
    JobAttachment,
    JobSurroundings,
)
from ..._parse.kubernetes.quantity import parse_quantity

#: names that are compared in one call of the linter, at most: of 4,000 pods with eight devices and eight names in a
#: variable, seven times
MOST_COMPARISONS = 2_000_000
#: names of GPUs behind the domain of their vendor: of NVIDIA and AMD, of NVIDIA where pods share one, and of Intel
_GPUS = ("/gpu", "/gpu.shared", "/gaudi")
#: other names of GPUs: those of Intel, by their kernel driver, and partitions of AMD's in its mixed naming strategy, by
#: compute and memory mode [intel/intel-device-plugins-for-kubernetes cmd/gpu_plugin; ROCm/k8s-device-plugin docs]
_OTHER_GPUS = re.compile(r"gpu\.intel\.com/(?:i915|xe)|amd\.com/[sdtqc]px_nps[0-9]{1,2}")
#: the beginning of a text that C takes for a number of base 16, 8 or 10
_NUMBER = re.compile(r"[ \t-\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]{0,30}))")


class ComparisonBudget:
    """The number of comparisons of names that one call of the linter may still make.

    It is limited because tenants choose how many pods there are, and which interfaces and devices these report.
    """

    def __init__(self) -> None:
        self._left = MOST_COMPARISONS

    @property
    def is_spent(self) -> bool:
        return self._left < 0

    def spend(self, comparisons: int) -> bool:
        """Subtract a number of comparisons from the budget. If fewer were left, the budget is spent: return False."""
        self._left -= comparisons
        return not self.is_spent


@dataclasses.dataclass(frozen=True)
class LintedTemplate:
    """The input of each rule of the linter: a pod template of a job, and the cluster in which it would run.

    :ivar job: job that the linter checks
    :ivar template: one of its pod templates
    :ivar surroundings: state of the cluster; None if no cluster was queried
    :ivar hints: suggestions for misspelled names, limited in number and shared by all jobs of one call of the linter
    :ivar budget: comparisons of names that may still be made, shared by all jobs of one call of the linter
    """

    job: JobWorkload
    template: PodTemplate
    surroundings: typing.Optional[JobSurroundings]
    hints: Hints
    budget: ComparisonBudget

    @property
    def subject(self) -> str:
        return f"{self.job.subject} {self.template.path}".rstrip()

    @property
    def workers(self) -> tuple[PodContainer, ...]:
        """Return the containers that compute: those with GPUs. Without any, return those with NCCL variables, and
        otherwise all containers.
        """
        found = [item for item in self.template.containers if has_gpus(item)]
        found = found or [
            item
            for item in self.template.containers
            if any(variable.name.startswith("NCCL_") for variable in item.environment)
        ]
        return tuple(found) or self.template.containers

    @property
    def devices(self) -> dict[str, int]:
        """Return the amount of each extended resource of the network (all but GPUs) that the containers that compute
        request, by name.
        """
        found: typing.Counter[str] = collections.Counter()
        for container in self.workers:
            found.update(
                {
                    name: int(parse_quantity(amount, name))
                    for name, amount in container.limits.items()
                    if "/" in name and not is_gpu(name)
                }
            )
        return dict(found)

    @property
    def claimed(self) -> frozenset[str]:
        """Return the purposes, such as ``network``, of the devices that the containers that compute claim."""
        return frozenset(use for container in self.workers for use in container.claimed)

    @property
    def claims_network(self) -> bool:
        """Return whether a claim provides network devices, or devices of unknown use, to the containers that
        compute.
        """
        return bool(self.claimed & {"network", "unknown"})

    @property
    def computes(self) -> bool:
        """Return whether the pods compute: they have GPUs, network devices or a secondary network. The launcher of an
        MPIJob has none of these.
        """
        return bool(
            self.template.networks
            or self.devices
            or self.claims_network
            or any(has_gpus(item) for item in self.template.containers)
        )

    @property
    def has_peers(self) -> bool:
        """Return whether the job has more than one pod that computes."""
        return self.template.count > 1 or any(
            other is not self.template and other.count > 0 and dataclasses.replace(self, template=other).computes
            for other in self.job.templates
        )

    @property
    def tcp(self) -> bool:
        """Return whether the job disables RDMA by NCCL_IB_DISABLE."""
        disable = self.value("NCCL_IB_DISABLE")
        return disable is not None and disable.value is not None and read_integer(disable.value) != 0

    def value(self, name: str) -> typing.Optional[Variable]:
        """Return the setting of a variable in the containers that compute; the last one if it is set several times,
        None if it is not set. A setting in a command is ignored if only a shell can compute its value. A setting that
        a launcher of MPI in another pod gives to all ranks takes precedence.

        :param name: name of the environment variable
        """
        given = [
            item
            for path, item in self.job.exported.get(name, ())
            if path != self.template.path and item.value is not None
        ]
        if given:
            return given[-1]
        found = [item for container in self.workers for item in container.environment if item.name == name]
        return next((item for item in reversed(found) if item.value is not None or item.place.endswith(".env")), None)

    def is_computed(self, name: str) -> bool:
        """Return whether a command of the containers that compute sets a variable last, to a value that only a shell
        can compute.

        :param name: name of the environment variable
        """
        if any(path != self.template.path for path, _item in self.job.exported.get(name, ())):
            return False
        found = [item for container in self.workers for item in container.environment if item.name == name]
        return bool(found) and found[-1].value is None and not found[-1].place.endswith(".env")

    def attachments(self) -> list[tuple[NetworkRequest, typing.Optional[JobAttachment]]]:
        known = self.surroundings.attachments_by_name if self.surroundings else {}
        return [(request, known.get(request.full_name)) for request in self.template.networks]


def read_integer(text: str) -> int:
    """Return a number as NCCL parses it, by strtoll with base 0: the digits up to the first other character, or 0
    without digits. A leading 0 means octal.

    For a number out of range NCCL uses the default of the variable, which is 0 for the variables that are parsed here.
    [src NVIDIA/nccl v2.30.7: src/misc/param.cc ncclLoadParam]

    :param text: value of a variable of NCCL
    """
    found = _NUMBER.match(text)
    if found is None:
        return 0
    sign, hexadecimal, octal, decimal = found.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal or "0")
    value = -value if sign == "-" else value
    return value if -(1 << 63) <= value < 1 << 63 else 0


def is_gpu(name: str) -> bool:
    """Return whether an extended resource is a GPU: a whole GPU, a GPU that pods share in time, or a part of a GPU.

    [NVIDIA/k8s-device-plugin README: with renameByDefault, a GPU that is shared is nvidia.com/gpu.shared]
    """
    return name.endswith(_GPUS) or "/mig-" in name or _OTHER_GPUS.fullmatch(name) is not None


def has_gpus(container: PodContainer) -> bool:
    return "gpu" in container.claimed or any(
        is_gpu(name) and parse_quantity(amount, name) > 0 for name, amount in container.limits.items()
    )


def collect_extended_resources(template: PodTemplate) -> dict[str, int]:
    found: typing.Counter[str] = collections.Counter()
    for container in template.containers:
        found.update(
            {name: int(parse_quantity(amount, name)) for name, amount in container.limits.items() if "/" in name}
        )
    return dict(found)
