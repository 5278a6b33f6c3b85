# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems that NCCL and PyTorch write into the log of a job, by kind of problem."""

from __future__ import annotations

from ..._analysis.fleet.providers import PROVIDERS
from ..._model.run.findings import FAIL, WARN, Status
from .nccl_machine_causes import MACHINE_CAUSES
from .nccl_network_causes import NETWORK_CAUSES

#: kind of a problem (_parse/job/nccl_problem.py): status, cause and remedy
NCCL_CAUSES: dict[str, tuple[Status, str, str]] = {
    # the provider may be that of an HCA that the job does not use; where the job lacks an HCA, training.transport fails
    **{kind: (WARN, cause.why, cause.remedy) for kind, cause in PROVIDERS.items()},
    **NETWORK_CAUSES,
    **MACHINE_CAUSES,
    "forced": (
        FAIL,
        "A variable forces a feature that these machines do not have.",
        (
            "Remove the variable. If NCCL_MNNVL_ENABLE and NCCL_NVLS_ENABLE are unset, NCCL uses the value 2. If"
            " NCCL_IB_OOO_RQ and NCCL_CUMEM_ENABLE are unset, NCCL uses their defaults."
        ),
    ),
    "address": (
        FAIL,
        "NCCL cannot read the address at which the ranks meet.",
        (
            "Correct NCCL_COMM_ID: ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or HOST:PORT with a name that the pod can"
            " resolve."
        ),
    ),
    "bootstrap": (
        FAIL,
        "The ranks have different values for the number of ranks, or two processes have the same rank.",
        "Compare RANK and WORLD_SIZE of all pods. End the pods of an earlier attempt that use the same address.",
    ),
    "strange_peer": (
        WARN,
        "A program that is not a rank of this job connected to a port of NCCL. It can be a rank of another job.",
        (
            "Exclude the pods of the job from port scanners, health checks and the sidecars of a service mesh. Do not"
            " use the same NCCL_COMM_ID, or the same MASTER_ADDR and MASTER_PORT, for two jobs."
        ),
    ),
    "connection": (
        FAIL,
        "A TCP connection between ranks failed or was closed.",
        "Read the first problem in the log: most likely another rank failed first.",
    ),
    "unix_sockets": (
        FAIL,
        (
            "Ranks on one machine could not share memory over a Unix socket. They are in different network namespaces,"
            " or one of them has ended."
        ),
        (
            "Read the first problem in the log. If several pods of the job run on one machine, use one pod for all its"
            " GPUs, or set NCCL_CUMEM_ENABLE=0."
        ),
    ),
    "same_gpu": (
        FAIL,
        "Two ranks use the same GPU.",
        "Start one rank for each GPU, and select the device by LOCAL_RANK.",
    ),
    "versions": (
        FAIL,
        "The ranks or libraries have different versions of NCCL.",
        "Use one image for all pods, and check LD_LIBRARY_PATH.",
    ),
    "aborted": (
        WARN,
        "NCCL aborted the communicator. This is a consequence of another problem.",
        "Read the first problem of any rank in the log.",
    ),
    "topology_file": (
        FAIL,
        "A topology file could not be read, or belongs to another machine or release.",
        (
            "Check NCCL_TOPO_FILE and NCCL_GRAPH_FILE in the job and in its image. Unless the machine is virtual, use"
            " no such file. On a virtual machine, compare the file with the output of"
            " NCCL_TOPO_DUMP_FILE=/tmp/topology.xml on that machine."
        ),
    ),
    "no_algorithm": (
        FAIL,
        "The settings of the job leave no algorithm for a collective.",
        "Remove NCCL_ALGO and NCCL_PROTO from the job and its image.",
    ),
    "no_transport": (
        FAIL,
        "NCCL has no path between two ranks: not over NVLink or PCIe, not over shared memory, and not over a network.",
        (
            "Remove NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA from the job. Find the network of"
            " the ranks in the log with NCCL_DEBUG=INFO."
        ),
    ),
    "collective_mismatch": (
        FAIL,
        "The ranks do not call the same collective: its size, its algorithm or its protocol differs between them.",
        (
            "Set the same NCCL_ALGO, NCCL_PROTO and tuning variables in all pods, and use one image. Check whether a"
            " rank has different data or a different code path."
        ),
    ),
    "plugin": (
        WARN,
        "A plugin of NCCL does not behave as NCCL expects.",
        (
            "Use plugins of the release of NCCL (libnccl-net.so, libnccl-tuner.so, libnccl-profiler.so in the image),"
            " or no plugins."
        ),
    ),
    "proxy": (
        FAIL,
        "A thread of NCCL that transfers the data of a rank failed.",
        "Read the first problem of this host in the log.",
    ),
    "application": (
        FAIL,
        "The program calls NCCL in a way that NCCL refuses. The cluster is not the cause.",
        "Read the stack trace of the program at that line. Verify that its framework supports this release of NCCL.",
    ),
    "hint": (
        WARN,
        "NCCL corrected a setting of the job.",
        "Correct the variable or the setting that the message under 'measured' names.",
    ),
    "timeout": (
        FAIL,
        "A collective did not end in time: a rank did not take part, or the network does not transfer data.",
        "Find the last action of the slowest rank in the log.",
    ),
    "": (
        WARN,
        "The message is not among those whose effect on the network is known.",
        (
            "Look up this message in the documentation of NCCL. If the findings training.transport and"
            " training.channels pass, it did not change the transport, and no action is needed. Otherwise correct what"
            " it names, and run the job again."
        ),
    ),
}
