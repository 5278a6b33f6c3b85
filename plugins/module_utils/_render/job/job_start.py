# SPDX-License-Identifier: GPL-3.0-or-later

"""The scripts that the pods of a training job run before the training program. They are shell scripts, because an image
is only certain to contain ``sh``.

The virtual function of a pod, and the index of the RoCE GID of its address, are known only in the pod. The scripts find
them when the pod starts. [src sriov-network-device-plugin pkg/resources PCIDEVICE_*; Linux
Documentation/ABI/stable/sysfs-class-infiniband gid_attrs]
"""

from __future__ import annotations

import re
import typing

from ..._parse.job.nic_map import KEY

Command = tuple[str, ...]

#: where the NIC map is mounted
MAP_FOLDER = "/etc/linerate"
METRIC = 150

# The pod's devices: those of the functions that the device plugin names, else those whose verbs device is in the pod.
# Others are only to be seen.
_DEVICES = r"""
devices=
for address in $(env | sed -n 's/^{variable}=//p' | tr ',' ' '); do
  for device in /sys/bus/pci/devices/"$address"/infiniband/*; do
    if [ -e "$device" ]; then devices="$devices ${{device##*/}}"; fi
  done
done
if [ -z "$devices" ]; then
  for verbs in /sys/class/infiniband_verbs/uverbs*; do
    if [ -e "/dev/infiniband/${{verbs##*/}}" ]; then devices="$devices $(cat "$verbs/ibdev")"; fi
  done
fi
if [ -z "$devices" ]; then
  echo 'linerate.rdma: the pod has no RDMA device; expected one of {resource}' >&2
  exit 1
fi
NCCL_IB_HCA="=$(echo $devices | tr ' ' ',')"
export NCCL_IB_HCA
"""
# The GID of RoCE v2 that belongs to an interface of the pod and is routable. NCCL takes one index for all devices;
# where they differ it chooses itself (2.21).
_GID_INDEX = r"""
indexes=
for device in $devices; do
  own=
  for port in /sys/class/infiniband/"$device"/ports/*; do
    # NCCL takes each active port of a device, and no other
    state=$(cat "$port/state" 2> /dev/null)
    case ${state:-ACTIVE} in *ACTIVE*) ;; *) continue ;; esac
    found=
    for gid in "$port"/gids/*; do
      attributes=$port/gid_attrs index=${gid##*/}
      [ "$(cat "$attributes/types/$index" 2> /dev/null)" = 'RoCE v2' ] || continue
      netdev=$(cat "$attributes/ndevs/$index" 2> /dev/null)
      [ -n "$netdev" ] && [ -e "/sys/class/net/$netdev" ] || continue
      case $(cat "$gid") in fe80:*) continue ;; esac
      found=$index
      break
    done
    own="$own ${found:-none}"
  done
  indexes="$indexes ${own:-none}"
done
indexes=$(echo $indexes | tr ' ' '\n' | sort -u)
case $indexes in
  *[!0-9]*) echo "linerate.rdma: no index of a RoCE v2 GID is the same for all of$devices; NCCL chooses" >&2 ;;
  *) NCCL_IB_GID_INDEX=$indexes; export NCCL_IB_GID_INDEX ;;
esac
"""
_ADDRESSES = r"""
set -eu
seen=
while IFS=: read -r node netdev interface address; do
  [ "$node" = "$NODE_NAME" ] || continue
  case $address in *:*) length=128 ;; *) length=32 ;; esac
  ip address flush dev "$interface" scope global
  ip address add "$address/$length" dev "$interface"
  while IFS=: read -r other rest peer_interface peer; do
    if [ "$other" = "$node" ] || [ "$peer_interface" != "$interface" ]; then continue; fi
    ip route replace "$peer/$length" dev "$interface" src "$address" metric {metric}
  done < {map}
  seen=1
done < {map}
if [ -z "$seen" ]; then
  echo "linerate.rdma: the NIC map has no line of node $NODE_NAME" >&2
  exit 1
fi
"""


def render_start_command(resource: str, roce: bool, command: typing.Sequence[str]) -> Command:
    """Return a command that sets NCCL_IB_HCA to the RDMA devices of its pod, and on RoCE also NCCL_IB_GID_INDEX, and
    then runs ``command``. It fails if the pod has no RDMA device.

    :param resource: extended resource of the devices, such as openshift.io/mlx_compute
    :param roce: whether the fabric is RoCE
    """
    variable = "PCIDEVICE_" + re.sub(r"[^A-Z0-9]", "_", resource.upper())
    script = _DEVICES.format(variable=variable, resource=resource) + (_GID_INDEX if roce else "") + 'exec "$@"\n'
    return ("sh", "-c", script.lstrip(), "start", *command)


def render_address_command() -> Command:
    """Return the command of the container that sets the IP addresses of a pod's interfaces from the NIC map (the
    entries of its node), and adds a route to each peer over the same interface. The command needs the capability
    NET_ADMIN and the environment variable NODE_NAME.
    """
    return ("sh", "-c", _ADDRESSES.format(metric=METRIC, map=f"{MAP_FOLDER}/{KEY}").lstrip(), "addresses")
