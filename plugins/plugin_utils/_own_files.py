# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Files that the tasks of one ansible-playbook use to share data, since each task runs in its own process. The files
are removed when ansible-playbook ends.
"""

from __future__ import annotations

import hashlib
import os

from ansible import constants


def path_of(subject: str, key: str) -> str:
    """Return the path of a file in which a task stores data for later tasks of the same ansible-playbook.

    :param subject: kind of the data, such as ``boots``
    :param key: name of the run or node of the data; any text
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return os.path.join(constants.DEFAULT_LOCAL_TMP, f"linerate-{subject}-{digest}.json")
