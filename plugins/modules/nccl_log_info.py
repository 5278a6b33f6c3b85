#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_log_info
short_description: Show the transport of each channel of each rank of a job, and what nccl-tests printed, from the NCCL
  log
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the log that NCCL 2.8 to 2.32 writes with C(NCCL_DEBUG=INFO), and that of RCCL, the library of AMD.
  - Returns versions, processes with their devices, communicators, ranks, and the transport of every channel. For each
    channel over the network it shows whether GPUDirect RDMA is used, and if not, why. It returns warnings with their
    known causes.
  - Lines of several ranks may be mixed. They may have prefixes of C(kubectl logs), C(torchrun), C(mpirun) or other
    tools.
  - A listed device proves nothing; only channels do. The result does not contain what is missing in the log because
    lines were torn or cut off.
  - Where a program of nccl-tests 2.0 to 2.19 or rccl-tests wrote into the same log, the module returns its table beside
    the transport that the log proves. A document of its option C(-J) can be one of the files.
  - The module only shows the log. The stage C(training) judges it against the intent and the pods.
  - The module reads the log once. Its memory depends on the number of ranks and channels, not on the size of the log.
  - Any program of the job may write into the log. The module needs 128 MiB of memory and 8 bytes for each character of
    the log at most. It fails if the log names more processes, ranks and channels than that allows, which NCCL itself
    does not write.
options:
  paths:
    description:
      - Log files on the host where the module runs. Either one file with all ranks, or one file per pod.
      - If there are several, each process lists the files that contain its lines, and the other hosts in these files.
      - A link, a FIFO, a device, or a file of more than 16 GiB is left out, since any program of the job may have put
        it there.
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

- name: Show what nccl-tests measured, and by which transport
  ansible.builtin.debug:
    msg: "{{ item.average_bus_gbs }} GB/s over {{ item.transport.transports | join(', ') }}, proven: {{
      item.transport.proven }}"
  loop: "{{ nccl.tests }}"
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
        - C(choices) lists the algorithm that NCCL chose for each collective and size. It needs C(TUNING) in
          C(NCCL_DEBUG_SUBSYS).
        - C(mtus) and C(gid_indexes) are those of its queue pairs. They need C(NET) in C(NCCL_DEBUG_SUBSYS).
        - C(files) and C(beside) are empty for a single log. Otherwise they list the files with lines of the process,
          and other hosts with lines in them.
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
          choices:
            - {function: AllReduce, size_bytes: 1073741824, algorithm: RING, protocol: SIMPLE, channels: 16}
          mtus: [4096]
          gid_indexes: []
          files: [job-worker-0.log]
          beside: []
    communicators:
      description: Communicators with their ranks. Ranks without an identity in the log are in a communicator whose
        C(size) is V(null).
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
    left_out:
      description: Files and hosts that name more processes and ranks than any pod can have, or than have room in the
        result, and files that are not regular files of 16 GiB at most. The others are not affected.
      returned: success
      type: list
      elements: dict
      sample: []
      contains:
        source:
          description: Name of the file, or of the host where all ranks are in one file.
          returned: success
          type: str
          sample: worker-3.log
        hosts:
          description: Hosts of which the file has lines, 20 at most.
          returned: success
          type: list
          elements: str
          sample: [worker-3]
        why:
          description: The reason.
          returned: success
          type: str
          sample: it names more than 64 MiB of processes, ranks and their connections
    endpoints:
      description:
        - Endpoints of UCX with their transports, as it writes them with C(UCX_LOG_LEVEL=info). C(scope) is empty where
          the version does not say where the peer is.
      returned: success
      type: list
      elements: dict
      sample:
        - {host: job-worker-0, scope: inter-node, lanes: ["rc_mlx5/mlx5_21:1"], count: 8}
    more_endpoints:
      description: Number of lines of endpoints that are not in C(endpoints), because there are too many kinds, or the
        lines are not whole.
      returned: success
      type: int
      sample: 0
    untold:
      description: Number of warnings of no known kind that are not in C(problems), because there are too many.
      returned: success
      type: int
      sample: 0
tests:
  description:
    - Runs of programs of nccl-tests or rccl-tests in the log. Sizes are in bytes, times in us, bandwidths in GB/s.
      Empty without such a run.
    - A figure is one of a whole run where C(lacks) is empty, and it went the way of C(transport.transports) where
      C(transport.proven) is V(true).
  returned: success
  type: list
  elements: dict
  contains:
    collective:
      description: all_reduce, all_gather and so on. Empty where the version does not say.
      returned: success
      type: str
      sample: all_reduce
    version:
      description: Version of nccl-tests. Empty where it does not say.
      returned: success
      type: str
      sample: 2.19.6
    library:
      description: Release of NCCL. Empty where the version does not say.
      returned: success
      type: str
      sample: 2.28.9
    ranks:
      description: Ranks that the test lists. C(group) is that of NCCL_TESTS_SPLIT.
      returned: success
      type: list
      elements: dict
      sample:
        - {rank: 0, group: 0, pid: 2854, host: vm, gpu: 0, bus_id: "0000:00:06", model: NVIDIA H200}
    announced:
      description: Number of rows that the test said it would make for one type, operation and root.
      returned: success
      type: int
      sample: 3
    cpu_time:
      description: Whether the times are those of the CPU (option C(-C)).
      returned: success
      type: bool
      sample: false
    rows:
      description:
        - Rows of the table. C(root) is V(null) where the collective has none; C(out_of_place) and C(in_place) are
          V(null) where the test leaves it out.
        - C(wrong) is V(null) where the values were not checked. Versions before 2.13 print C(largest_error) in its
          place. C(p99_us) is there with the option C(-I) of nccl-tests.
      returned: success
      type: list
      elements: dict
      sample:
        - size_bytes: 1048576
          count: 262144
          type: float
          operation: sum
          root: null
          out_of_place:
            {time_us: 508.19, algorithm_gbs: 2.06, bus_gbs: 2.06, wrong: 0, largest_error: null, p99_us: null}
          in_place:
            {time_us: 513.8, algorithm_gbs: 2.04, bus_gbs: 2.04, wrong: 0, largest_error: null, p99_us: null}
    unfinished:
      description: Sizes of the rows that were begun and not ended.
      returned: success
      type: list
      elements: int
      sample: []
    out_of_bounds:
      description: Number of wrong results by the summary. V(null) without a summary.
      returned: success
      type: int
      sample: 0
    average_bus_gbs:
      description: Average bus bandwidth by the summary. V(null) without a summary.
      returned: success
      type: float
      sample: 2.67309
    concluded:
      description: Whether the end of the run is in the log.
      returned: success
      type: bool
      sample: true
    errors:
      description: Lines that say what failed, 20 at most.
      returned: success
      type: list
      elements: str
      sample: []
    torn:
      description: Number of rows and summaries that are not whole or contradict themselves.
      returned: success
      type: int
      sample: 0
    lacks:
      description: Why these are not the figures of a whole run. Empty for a whole run.
      returned: success
      type: list
      elements: str
      sample: []
    transport:
      description:
        - C(proven) is V(true) where the log shows each channel of each rank of the test, and none of them uses TCP.
          C(reasons) says why not, 4 reasons at most.
        - C(transports) lists the transports of the channels that the log shows. Within a host that is P2P or SHM, and
          no network.
      returned: success
      type: dict
      sample:
        proven: false
        transports: [NET/Socket]
        reasons: ["vm rank 0: NET/Socket 4. NCCL found no RDMA device that it may use in the pod, and fell back to TCP
          in silence."]
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import io
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    FACT_SPEC,
    find_folder,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.sources import leave_out_large
from ansible_collections.linerate.rdma.plugins.module_utils._check.training.figures import judge_tests
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import tests as nccl_tests
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import MOST_BYTES
from ansible_collections.linerate.rdma.plugins.module_utils._store.job_logs import has_several_logs, read_files


def main() -> None:
    module = AnsibleModule(
        argument_spec={"paths": {"type": "list", "elements": "path"}, "text": {"type": "str"}, **FACT_SPEC},
        required_one_of=[("paths", "text")],
        mutually_exclusive=[("paths", "text")],
        supports_check_mode=True,
    )
    paths, text = module.params["paths"], module.params["text"]

    def work() -> dict[str, typing.Any]:
        reader = nccl_tests.NcclTestsReader()
        files = [("text", io.StringIO(text, newline="\n"))] if paths is None else read_files(paths)
        sources: typing.Literal["files", "hosts"] = "files" if paths and has_several_logs(paths) else "hosts"
        parsed = nccl_log.parse_files(((name, reader.watch(lines)) for name, lines in files), sources)
        folder = find_folder(module)
        most = MOST_BYTES if folder is None else folder.limit(module.params["fact"] or "nccl_log")[0]
        log, data = leave_out_large(parsed, most // 4 * 3)
        return {"log": data, "tests": to_data(judge_tests(log, reader.runs()))}

    run_with_fact(module, work, "nccl_log")


if __name__ == "__main__":
    main()
