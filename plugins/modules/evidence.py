#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: evidence
short_description: Pack the folder of a run into an archive, or unpack one
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Packs facts, records, report and C(run.json) of a run into a C(tar.gz) archive. The archive contains SHA-256
    checksums and no secrets.
  - The same folder always gives the same archive, byte for byte.
  - Beside the archive, the module writes a sheet to sign. It prints on one page A4 and has the verdict, the figures of
    each fabric, the waivers, the versions, and the checksums of the intent and of the archive.
  - Before it unpacks an archive, the module verifies all checksums and that no path leads out of the folder. If a check
    fails, it unpacks nothing.
  - Runs on the controller. It needs no inventory, no nodes and no cluster.
options:
  state:
    description: Whether to pack or to unpack.
    type: str
    default: packed
    choices: [packed, unpacked]
  report_dir:
    description:
      - Report folder of the run, on the controller. Required with O(state=packed).
      - With O(state=unpacked), the target folder. It must not exist yet, or must already have the same content. The
        default is the name of the archive with C(.run) instead of C(.tar.gz).
      - The pages of the report are made anew from facts and records. They are not unpacked.
    type: path
  archive:
    description: Path of the archive. Required with O(state=unpacked). With O(state=packed), the default is
      C(rdma-evidence-<run>.tar.gz) beside the folder. An archive that is there with other content is not replaced.
    type: path
  sha256:
    description: With O(state=unpacked), the SHA-256 checksum of the archive on the signed sheet. The module fails if
      the archive has another one.
    type: str
  signature:
    description: With O(state=packed), what the sheet says of the parties. What is empty is a line on the sheet, to fill
      in by hand.
    type: dict
    suboptions:
      customer:
        description: Who accepts the network.
        type: str
        default: ""
      cluster:
        description: Name of the cluster.
        type: str
        default: ""
      contractor:
        description: Who delivers the network.
        type: str
        default: ""
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.judge
"""

EXAMPLES = r"""
- name: Pack the last run
  linerate.rdma.evidence:
    report_dir: build/report

- name: Pack it for an acceptance
  linerate.rdma.evidence:
    report_dir: build/report
    signature:
      customer: Example University
      cluster: training-1

- name: Unpack an archive that someone sent
  linerate.rdma.evidence:
    state: unpacked
    archive: rdma-evidence-20260102T030405Z-a1b2c3.tar.gz
  register: evidence_unpacked
"""

RETURN = r"""
archive:
  description: Absolute path of the archive.
  type: str
  returned: success
report_dir:
  description: Absolute path of the report folder of the run.
  type: str
  returned: success
run:
  description: ID of the run.
  type: str
  returned: success
files:
  description: Number of files of the run in the archive.
  type: int
  returned: success
sha256:
  description: SHA-256 checksum of the archive.
  type: str
  returned: success
signature:
  description: Absolute path of the sheet to sign.
  type: str
  returned: if it was packed
left_out:
  description: Paths in the folder that were not packed. They are no regular files, or a run does not write such files.
  type: list
  elements: str
  returned: success
"""
