# SPDX-License-Identifier: GPL-3.0-or-later

"""``site.yml`` on the lab in the foreground, then its verdict once more as the last line. Arguments go to
ansible-playbook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from .steps import ANSIBLE_ENV, BUILD, ROOT, say


def site(*arguments: str) -> int:
    """Run it.

    :returns: ansible-playbook's exit code
    """
    report = BUILD / "report" / "report.json"
    start = time.time()
    # whoever wants another output names it
    shown = {"ANSIBLE_STDOUT_CALLBACK": "linerate.rdma.stages", **os.environ, **ANSIBLE_ENV}
    code = subprocess.call([str(ROOT / "lab" / "ansible-playbook"), "site.yml", *arguments], cwd=ROOT, env=shown)
    minutes, seconds = divmod(int(time.time() - start), 60)
    say(f"site.yml took {minutes} min {seconds} s")
    if report.exists() and report.stat().st_mtime >= start:
        data = json.loads(report.read_text(encoding="utf-8"))
        say(f"linerate.rdma: {data['summary']} - report: {report.with_suffix('.html')}")
    else:
        say("linerate.rdma: NOT GREEN - the run ended before its report; what stopped it is above")
        code = code or 1
    return code


if __name__ == "__main__":
    sys.exit(site(*sys.argv[1:]))
