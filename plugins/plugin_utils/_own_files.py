# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Files of this ansible-playbook alone, which go with it. Its tasks are processes of their own: these files are what
they all know."""

from __future__ import annotations

import hashlib
import os

from ansible import constants


def path_of(subject: str, key: str) -> str:
    """Return the path of the file that keeps something for the tasks that follow.

    :param subject: what it keeps: ``boots``
    :param key: the run or node that it is about, any text
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return os.path.join(constants.DEFAULT_LOCAL_TMP, f"linerate-{subject}-{digest}.json")
