# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab is built from. Each module makes one kind of artefact, all kept by lab/cache.py."""
