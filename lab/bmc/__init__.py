# SPDX-License-Identifier: GPL-3.0-or-later

"""BMCs of the lab: what keeps, applies and refuses settings of a BIOS."""
