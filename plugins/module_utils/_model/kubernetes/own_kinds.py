# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of objects that the collection applies, in the order in which they can be removed."""

from __future__ import annotations

#: networks that pods attach
NETWORKS = (
    "SriovNetwork",
    "SriovIBNetwork",
    "MacvlanNetwork",
    "IPoIBNetwork",
    "HostDeviceNetwork",
    "NetworkAttachmentDefinition",
)
#: jobs whose status says whether they run
RUNNING_JOBS = ("PyTorchJob", "TrainJob")
#: objects of a training job
JOBS = (*RUNNING_JOBS, "TrainingRuntime")
#: pools of addresses of nv-ipam
POOLS = ("IPPool.nv-ipam.nvidia.com", "CIDRPool.nv-ipam.nvidia.com")
#: objects of the fabrics
OF_FABRICS = (
    *NETWORKS,
    "NicClusterPolicy",
    "SriovNetworkNodePolicy",
    "SriovNetworkPoolConfig",
    *POOLS,
)
KINDS = (*JOBS, "Pod", *OF_FABRICS, "NicConfigurationTemplate", "Tuned", "Namespace")
