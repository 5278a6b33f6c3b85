# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's InfiniBand fabrics: ibsim, real subnet managers, sysfs of the simulated HCAs, faults; made from one
description."""
