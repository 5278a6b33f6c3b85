# SPDX-License-Identifier: GPL-3.0-or-later

"""Selection of stages by the tags of ansible-playbook."""

from __future__ import annotations

import typing


def is_selected(name: str, tags: typing.Collection[str], skip_tags: typing.Collection[str]) -> bool:
    """Return whether site.yml runs a stage with the given tags of ansible-playbook.

    :param name: name of the stage, or ``report``
    :param tags: tags of ``--tags``; empty or ``all`` if the option is not given
    :param skip_tags: tags of ``--skip-tags``
    """
    names = {name, "all", "tagged"}
    return (not tags or bool(names.intersection(tags))) and not names.intersection(skip_tags)
