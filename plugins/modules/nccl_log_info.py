#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_log_info
short_description: Show the transport of each channel of each rank of a job, from the NCCL log
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the log that NCCL 2.8 to 2.30 writes with C(NCCL_DEBUG=INFO), and that of RCCL, the library of AMD.
  - Returns versions, processes with their devices, communicators, ranks, and the transport of every channel. For each channel over the network it shows
    whether GPUDirect RDMA is used, and if not, why. It returns warnings with their known causes.
  - Lines of several ranks may be mixed. They may have prefixes of C(kubectl logs), C(torchrun), C(mpirun) or other tools.
  - A listed device proves nothing; only channels do. The result does not contain what is missing in the log because lines were torn or cut off.
  - The module only shows the log. The stage C(training) judges it against the intent and the pods.
  - The module reads the log once. Its memory depends on the number of ranks and channels, not on the size of the log.
  - Any program of the job may write into the log. The module needs 128 MiB of memory and 8 bytes for each character of the log at most. It fails if the log
    names more processes, ranks and channels than that allows, which NCCL itself does not write.
options:
  paths:
    description: Log files on the host where the module runs. Either one file with all ranks, or one file per pod.
    type: list
    elements: path
  text:
    description: The text of the log.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
seealso:
  - name: Stage training
    description: Judges the result of this module.
    link: https://github.com/linerate/linerate.rdma/blob/main/roles/training/README.md
"""

EXAMPLES = r"""
- name: Show the transport of each channel of a job
  linerate.rdma.nccl_log_info:
    paths: [job-worker-0.log, job-worker-1.log]
  register: nccl
"""

RETURN = r"""
log:
  description: Content of the log. V(null) means that the log does not contain the value.
  returned: success
  type: dict
  contains:
    versions:
      description: Versions of NCCL; those of RCCL begin with its name.
      returned: success
      type: list
      elements: str
      sample: [2.28.9+cuda13.0]
    processes:
      description:
        - Processes with the network that each one chose, and the devices that it opened.
        - C(oob_interface) is the interface of its out-of-band connections.
      returned: success
      type: list
      elements: dict
      sample:
        - host: job-worker-0
          pid: 71
          version: 2.28.9+cuda13.0
          network: IB
          oob_interface: eth0
          oob_address: 10.128.2.17
          dma_buf: true
          without_ib: ""
          devices:
            - {index: 0, name: mlx5_21, port: 1, link: IB, rail: null, gpu_direct: true, reasons: []}
          environment: {NCCL_IB_HCA: "=mlx5_21"}
    communicators:
      description: Communicators with their ranks. Ranks without an identity in the log are in a communicator whose C(size) is V(null).
      returned: success
      type: list
      elements: dict
      contains:
        name:
          description: The commId, or the communicator from which this one was split.
          returned: success
          type: str
          sample: "0x6b99be0cc5a5bfbf"
        size:
          description: Number of ranks of the communicator.
          returned: success
          type: int
          sample: 16
        ranks:
          description:
            - Ranks in the log. C(routes) lists the transports of the channels.
            - C(unseen) lists channels of collectives that are missing in the log.
            - C(unanswered) lists network channels of which the log shows only the other end.
          returned: success
          type: list
          elements: dict
          sample:
            - rank: 0
              host: job-worker-0
              pid: 71
              gpu: 0
              bus_id: 1b000
              complete: true
              channels: 2
              point_to_point_channels: 2
              trees: 2
              rings: 2
              nodes: 2
              routes:
                - transport: NET
                  via: IB
                  direction: send
                  device: 0
                  gpu_direct: true
                  connection: 0
                  proxy: null
                  channels: [0, 1]
                  lines: 2
              unseen: []
              unanswered: []
    problems:
      description: Warnings and errors. Similar ones form one entry, with its kind if it is known.
      returned: success
      type: list
      elements: dict
      sample:
        - kind: memlock
          text: Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory
          place: misc/ibvwrap.cc:278
          hosts: [job-worker-0]
          count: 8
          line: 112
    lines:
      description: Number of lines in the log.
      returned: success
      type: int
      sample: 5120
    nccl_lines:
      description: Number of lines that NCCL wrote.
      returned: success
      type: int
      sample: 4711
    torn:
      description: Number of lines that mix messages of several ranks. These messages are lost.
      returned: success
      type: int
      sample: 0
    cut:
      description: Whether a log ends in the middle of a line.
      returned: success
      type: bool
      sample: false
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import FACT_SPEC, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.nccl_log import read_lines
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job import nccl_log


def main() -> None:
    module = AnsibleModule(
        argument_spec={"paths": {"type": "list", "elements": "path"}, "text": {"type": "str"}, **FACT_SPEC},
        required_one_of=[("paths", "text")],
        mutually_exclusive=[("paths", "text")],
        supports_check_mode=True,
    )
    paths, text = module.params["paths"], module.params["text"]
    run_with_fact(module, lambda: {"log": to_data(nccl_log.parse_text(text) if paths is None else nccl_log.parse(read_lines(paths)))}, "nccl_log")


if __name__ == "__main__":
    main()
