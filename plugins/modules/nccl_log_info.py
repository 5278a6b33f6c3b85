#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_log_info
short_description: Shows by which transport each channel of each rank of a job goes, from NCCL's log
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads what NCCL (2.8 to 2.30) writes with C(NCCL_DEBUG=INFO), and returns versions, processes with their devices, communicators, ranks, and the
    transport of every channel, with GPUDirect RDMA and why it is off, and warnings with their known causes.
  - Lines of many ranks may be mixed, and may have what C(kubectl logs), C(torchrun), C(mpirun) or others put in front of them.
  - That a device is listed proves nothing; only channels do. What is not in the log, because it was torn or cut off, is not in the answer either.
  - It only shows. The stage C(training) judges, against the intent and the pods.
  - One pass over the log, whatever its size; memory grows with ranks and channels, not with lines.
options:
  paths:
    description:
      - Files with the log, on the host that the module runs on. One file with all ranks, or one for each pod.
    type: list
    elements: path
  text:
    description: The log itself.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
seealso:
  - name: Stage training
    description: Judges what this module shows.
    link: https://github.com/linerate/linerate.rdma/blob/main/roles/training/README.md
"""

EXAMPLES = r"""
- name: See by which way the channels of a job go
  linerate.rdma.nccl_log_info:
    paths: [job-worker-0.log, job-worker-1.log]
  register: nccl
"""

RETURN = r"""
log:
  description: What the log shows. V(null) is what it does not say.
  returned: success
  type: dict
  contains:
    versions:
      description: Versions of NCCL.
      returned: success
      type: list
      elements: str
      sample: [2.28.9+cuda13.0]
    processes:
      description: Processes, with the network that each chose, the interface of its own connections, and the devices that it opened.
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
      description: Communicators with their ranks. A rank that never said who it is, is in one whose C(size) is V(null).
      returned: success
      type: list
      elements: dict
      contains:
        name:
          description: Its commId, or what it was split from.
          returned: success
          type: str
          sample: "0x6b99be0cc5a5bfbf"
        size:
          description: Ranks that it has.
          returned: success
          type: int
          sample: 16
        ranks:
          description:
            - Ranks that are in the log. C(routes) are the ways that its channels go; C(unseen) are channels of collectives of which nothing is in the log;
              C(unanswered) are channels over the network of which only the other end is there.
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
      description: Warnings and errors, those that are alike together, with their kind where it is known.
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
      description: Lines of the log.
      returned: success
      type: int
      sample: 5120
    nccl_lines:
      description: Lines that NCCL wrote.
      returned: success
      type: int
      sample: 4711
    torn:
      description: Lines in which messages of several ranks are mixed, so that they are lost.
      returned: success
      type: int
      sample: 0
    cut:
      description: Whether a log ends in the middle of a line.
      returned: success
      type: bool
      sample: false
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
