# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of the problems that NCCL and PyTorch write into the log of a job, by kind of problem."""

from __future__ import annotations

from ...._analysis.fleet.providers import PROVIDERS
from ...._model.run.findings import FAIL, WARN, Status
from .machine_causes import MACHINE_CAUSES
from .network_causes import NETWORK_CAUSES

#: kind of a problem (_parse/job/nccl/problem.py): status, cause and remedy
NCCL_CAUSES: dict[str, tuple[Status, str, str]] = {
    # the provider may be that of an HCA that the job does not use; where the job lacks an HCA, training.transport fails
    **{kind: (WARN, cause.why, cause.remedy) for kind, cause in PROVIDERS.items()},
    **NETWORK_CAUSES,
    **MACHINE_CAUSES,
    "forced": (
        FAIL,
        "A variable of the job forces a feature that these machines do not have.",
        (
            "Remove the variable that the message under 'measured' names (such as NCCL_MNNVL_ENABLE,"
            " NCCL_NVLS_ENABLE, NCCL_IB_OOO_RQ or NCCL_CUMEM_ENABLE) from the job and its image. NCCL then uses"
            " the feature only where the machine has it."
        ),
    ),
    "address": (
        FAIL,
        "NCCL_COMM_ID, the address at which the ranks meet, is not a valid address.",
        (
            "Remove NCCL_COMM_ID from the job, unless the program needs it. If it does, set it to ADDRESS:PORT,"
            " to [ADDRESS]:PORT for IPv6, or to HOST:PORT with a name that the pod can resolve."
        ),
    ),
    "bootstrap": (
        FAIL,
        "The ranks have different values for the number of ranks, or two processes have the same rank.",
        (
            "Run kubectl exec POD -- printenv RANK WORLD_SIZE for each pod of the job: RANK must differ, and"
            " WORLD_SIZE must be equal. Correct the job. If pods of an earlier attempt still run with the same"
            " MASTER_ADDR, delete them."
        ),
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
        "A TCP connection between ranks failed or was closed. Usually another rank failed before.",
        (
            "Follow the remedy of the finding training.problem with the lowest line number, which shows the rank"
            " that failed first. If this finding is the first one, check that the other pod still runs (kubectl get"
            " pods -o wide) and that no NetworkPolicy blocks the traffic between the pods."
        ),
    ),
    "unix_sockets": (
        FAIL,
        (
            "Ranks on one machine could not share memory over a Unix socket. They are in different network namespaces,"
            " or one of them has ended."
        ),
        (
            "If several pods of the job run on one machine, use one pod for all its GPUs, or set"
            " NCCL_CUMEM_ENABLE=0. Otherwise follow the remedy of the finding training.problem with the lowest"
            " line number, which shows the rank that failed first."
        ),
    ),
    "same_gpu": (
        FAIL,
        "Two ranks use the same GPU.",
        (
            "Start one process for each GPU of the pod (nproc-per-node), and let the program select its GPU by"
            " LOCAL_RANK (torch.cuda.set_device)."
        ),
    ),
    "versions": (
        FAIL,
        "The ranks of the job, or the libraries of a rank, have different versions of NCCL.",
        (
            "Use one image for all pods, named by its digest. If one image has two libraries (ldconfig -p | grep"
            " nccl in the pod), remove one of them, or correct LD_LIBRARY_PATH."
        ),
    ),
    "aborted": (
        WARN,
        "NCCL aborted the communicator, because another rank or the program failed before.",
        (
            "Follow the remedy of the finding training.problem with the lowest line number, which shows the rank"
            " that failed first."
        ),
    ),
    "topology_file": (
        FAIL,
        "A topology file could not be read, or belongs to another machine or release.",
        (
            "Unless the machine is virtual, remove NCCL_TOPO_FILE and NCCL_GRAPH_FILE from the job and its"
            " image. On a virtual machine, use the file of the provider for this machine type, and check that it"
            " exists in the image."
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
            "Remove NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA from the job and its image. If"
            " none of them is set, follow the remedies of the findings training.transport and training.hcas."
        ),
    ),
    "collective_mismatch": (
        FAIL,
        "The ranks do not call the same collective: its size, its algorithm or its protocol differs between them.",
        (
            "Set the same NCCL variables in all pods, and use one image. If they are already the same, the"
            " program is the cause: correct it, so that each rank calls the same collective with the same size"
            " (TORCH_DISTRIBUTED_DEBUG=DETAIL shows the calls of PyTorch)."
        ),
    ),
    "plugin": (
        WARN,
        "A plugin of NCCL in the image does not match this release of NCCL.",
        (
            "Use the plugins of this release of NCCL in the image (libnccl-net.so, libnccl-tuner.so,"
            " libnccl-profiler.so), or run without plugins: NCCL_NET_PLUGIN=none and NCCL_TUNER_PLUGIN=none."
        ),
    ),
    "proxy": (
        FAIL,
        "A thread of NCCL that transfers the data of a rank failed.",
        (
            "Follow the remedy of the finding training.problem with the lowest line number of this host, which shows"
            " the first error."
        ),
    ),
    "application": (
        FAIL,
        "The program calls NCCL with arguments that NCCL refuses. The cluster is not the cause.",
        (
            "Read the stack trace of the program after this line of the log, and correct the call that it names. If"
            " the call is one of the framework, use the release of NCCL for which the framework was built."
        ),
    ),
    "hint": (
        WARN,
        "NCCL corrected a setting of the job, so the job does not run with the value that it sets.",
        "Correct the variable or the setting that the message under 'measured' names.",
    ),
    "timeout": (
        FAIL,
        "A collective did not end in time: a rank did not take part, or the network does not transfer data.",
        (
            "Follow the remedies of the other findings training.problem first. If there are none, find the rank that"
            " did not start the collective: py-spy dump --pid PID in its pod shows where the program waits. If all"
            " ranks are in the collective, run stage bandwidth, and follow the remedies of its findings."
        ),
    ),
    "": (
        WARN,
        "linerate.rdma does not know this message, so its effect on the network is not known.",
        (
            "If the findings training.transport and training.channels pass, the message did not change the"
            " transport, and no action is needed. Otherwise look it up in the documentation of NCCL, correct"
            " what it names, and run the job again."
        ),
    ),
}
