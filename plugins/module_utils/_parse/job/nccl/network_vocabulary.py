# SPDX-License-Identifier: GPL-3.0-or-later

"""The patterns of warnings of NCCL about the network: HCAs, queue pairs, GIDs, interfaces and connections.

Texts: [src NVIDIA/nccl v2.8.4 to 2.31.0, WARN, and texts of the libraries of 2.31.2 and 2.32.3]. The order matters: the
first match wins.
"""

from __future__ import annotations

from .kinds import Rows

NETWORK: Rows = (
    (
        "imex",
        (
            r"\bMNNVL\b.{0,200}\bnot (?:working|supported)\b.{0,100}Check",
            r"\bIMEX\b",
            r"\bnvidia-imex",
            r"cuMem(?:Export|Import)\w{1,60} \(FABRIC\) failed",
        ),
    ),
    ("open_files", (r"[Ff]ail.{0,100}Too many open files",)),
    ("memlock", (r"Call to ibv_\w{1,60} failed with error Cannot allocate memory",)),
    (
        "peer_memory",
        (
            r"Call to ibv_reg_\w{1,60} failed with error (?:Bad address|Invalid argument)",
            r"Call to ibv_reg_dmabuf_\w{1,60} failed with error Operation not supported",
        ),
    ),
    ("completion", (r"Got completion [^=]{0,200} (?:error |status=)",)),
    ("gid_change", (r"GID table change", r"GID info query failed", r"during GID change", r"GID-change event")),
    (
        "sm_event",
        (
            r"async .{0,10}event ?: .{0,20}(?:SM change|client reregistration|LID change|P_Key change"
            r"|port active)",
        ),
    ),
    ("async_event", (r"NET/IB : .{0,80}\basync .{0,80}\bevent", r"NET/IB : .{0,80} unknown event type")),
    (
        "failover",
        (
            r"Device [0-9]{1,9} marked as failed",
            r"Got CQE with error",
            r"Detected [0-9]{1,9} failed devices",
            r"functional device",
            r"probing attempts",
            r"NET/IB: .{0,60}The error is fatal",
            r"replacement QP for the failed QP",
            r"Port recovery",
            r"port.recovery UC QP",
        ),
    ),
    ("slow_requests", (r"NET/IB: WQE (?:slow|stall)",)),
    ("queue_pair", (r"Call to ibv_modify_qp failed",)),
    ("pkey", (r"NCCL_IB_PKEY_VALUE=\S{1,200} not found", r"Call to ibv_query_pkey failed")),
    (
        "link_layers",
        (r"incompatible devices", r"device is incompatible with the local", r"link_layer"),
    ),
    (
        "nic_counts",
        (
            r"mixed local (?:CollNet|Net) device counts",
            r"has a different number of devices",
            r"requires NIC .{1,40}not available for rank",
        ),
    ),
    (
        "merged_nics",
        (
            r"TOPO/NET : (?:Could not force merge|Only matched|Tried|Couldn't generate|Can't find)",
            r"Trying to merge multiple devices",
            r"Specified fused NIC",
            r"Fusing NET devices",
            r"Cannot allocate any more virtual devices",
            r"virtual NIC with 0 devices",
            r"NET/TOPO : Couldn't find net with name",
        ),
    ),
    ("no_libibverbs", (r"Failed to open libibverbs\.so", r"dlv?sym failed on .{0,80}\bibv_")),
    (
        "no_device",
        (
            r"NET/IB : Unable to (?:open|query) (?:device|port)",
            r"IB device \S{1,200} not found",
            r"Call to ibv_(?:open_device|get_device_list|query_device|query_port)\b.{0,20}failed",
        ),
    ),
    (
        "verbs",
        (
            r"(?:Call to )?\bibv_\w{1,60}(?:\(\))? (?:failed|returned)",
            r"NET/MLX5: Call to",
            r"mlx5dv_\w{1,60} failed",
            r"mlx5dv_get_data_direct_sysfs_path",
        ),
    ),
    (
        "gid_settings",
        (
            r"NET/IB: Ip address (?:mask )?'.{0,100}' is invalid for family",
            r"failed in ncclIbRoceGetVersionNum",
        ),
    ),
    ("routed_subnets", (r"remote FLID configured as zero", r"NCCL_IB_SUBNET_PREFIX_LEN")),
    (
        "forced",
        (
            r"MNNVL is not supported on this system",
            r"OOO RQ is force enabled",
            r"NCCL_NVLS_ENABLE has been set",
            r"Do not force-enable NVLS",
            r"CUMEM (?:Host is )?not supported",
        ),
    ),
    (
        "gpu_initiated",
        (
            r"Unable to use GIN",
            r"GIN(?: is disabled|-capable|(?: not|\b.{0,20}does not) support|.{0,40} but not all ranks)",
            r"No (?:GIN|RMA)-capable devices",
            r"support GDAKI",
            r"(?:Gin|Rma) connect : min local net count is zero",
            r"\bDOCA (?:Error|failure)",
            r"GIN Error",
            r"GIN Proxy: RMA backend",
            r"RMA not supported",
            r"host RMA is not supported",
            r"connect GDAKI QP",
            r"requires DMABUF support with GIN",
            r"One-sided RMA requires",
        ),
    ),
    ("ignored_interface", (r"no device found matching \S{1,200}, ignoring",)),
    (
        "no_interface",
        (
            r"no socket interface found",
            r"No IP interface found",
            r"No usable listening interface found",
            r"no device found (?:match|after excl)",
            r"NET/Socket : no interface found",
            r"No interface found in the same subnet",
        ),
    ),
    ("no_network", (r"Failed to initialize any NET plugin", r"Error: network \S{1,200} not found")),
    (
        "address",
        (
            r"Net : (?:No valid|string is null|unsupported IP|Unsupported address"
            r"|error encountered when getting)",
            r"Invalid NCCL_COMM_ID",
            r"is neither AF_INET",
        ),
    ),
    ("bootstrap", (r"Bootstrap Root : ", r"bootstrapInit: ")),
    (
        "strange_peer",
        (r"wrong magic", r"wrong type [0-9]{1,9} != ", r"Handshake receive from \S{1,200} failed"),
    ),
    (
        "connection",
        (
            r"[Cc]onnect to \S{1,200} (?:failed|returned)",
            r"Connection closed by remote peer",
            r"Call to (?:\S{1,200} )?(?:recv|send).{0,200}failed",
            r"remote process has exited",
            r"ocketPollConnect(?: to|:| poll\(\))(?!.{0,5}pass NULL)",
            r"connect returned .{1,80}exceeded",
            r"exceeded (?:error retry count|retries|timeouts)",
            r"Accept failed",
            r"ocketProgressOpt: Call to",
            r"NET/Socket : socket progress error",
            r"socketTryAccept: get errno",
        ),
    ),
)
