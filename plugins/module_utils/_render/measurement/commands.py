# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the commands that run in the pods of stage bandwidth.

``timeout`` limits each command inside the pod, because perftest and rping never end on some networks, and a server
continues to run after its client has died. The output is line-buffered, because a killed tool would otherwise lose the
output that is still in its buffer.

Pods and nodes supply some of the arguments. Each function raises OperandError if an argument would be read as an option
of the tool or would break the command line.
"""

from __future__ import annotations

import typing

from ..._model.base.operand import require_operand
from ..._model.intent.intent import Fabric
from ..._parse.pods.shell import MARK

Command = tuple[str, ...]

PINGS = 5
#: what an operand is, for the reader
_SERVER = "the address of the server"
#: what the image must have, for RDMA and for TCP; taskset is of use, and missing it is no failure
NEEDED, TCP_NEEDED = ("timeout", "stdbuf", "rping", "ib_write_bw"), ("timeout", "stdbuf", "iperf3")
#: of a measurement of the latency: 1 % of the messages are enough for p99
LATENCY_BYTES, LATENCY_MESSAGES = 8, 10_000
#: of TCP, at once: one is bound by one processor, long before a fast link is full
STREAMS = 4
#: text by which a server shows that it is about to listen. The client is tried again, boundedly, should it be a moment
#: too early
PING_SERVER_UP = "rdma_listen"
BANDWIDTH_SERVER_UP = "Waiting for client to connect"
TCP_SERVER_UP = "Server listening on"

_PROBE = r"""
env | grep '^PCIDEVICE_' | grep -v '_INFO=' | while read -r line; do echo "env $line"; done
for address in $(env | grep '^PCIDEVICE_' | grep -v '_INFO=' | cut -d= -f2- | tr ',' ' ') $1; do
  folder=/sys/bus/pci/devices/$address
  for device in "$folder"/infiniband/*; do [ -e "$device" ] && echo "pci $address ${device##*/}"; done
  for name in "$folder"/infiniband_verbs/*/ibdev; do [ -r "$name" ] && echo "verbs $(cat "$name")"; done
  [ -r "$folder/numa_node" ] && echo "numa $address $(cat "$folder/numa_node")"
  [ -r "$folder/local_cpulist" ] && echo "cpus $address $(cat "$folder/local_cpulist")"
  if [ -e "$folder/physfn" ]; then
    folder=$folder/physfn
    target=$(readlink "$folder")
    echo "physfn $address ${target##*/}"
  fi
  [ -r "$folder/current_link_speed" ] && echo "speed $address $(cat "$folder/current_link_speed")"
  [ -r "$folder/current_link_width" ] && echo "width $address $(cat "$folder/current_link_width")"
done
for device in /sys/class/infiniband/*; do
  [ -r "$device/ports/1/rate" ] && echo "rate ${device##*/} $(cat "$device/ports/1/rate")"
done
command -v rdma > /dev/null && echo "rdma $(rdma -j link | tr -d '\n')"
while read -r key value; do [ "$key" = Cpus_allowed_list: ] && echo "allowed $value"; done < /proc/self/status
"""

# One connection to a pod is enough for all that it does: a command a line on stdin, after its name. Who starts a
# command ends the one before it, and with it what is left in its process group: a signal that `timeout` gets before
# it knows its child ends `timeout` alone. Both streams of it are one, so that what it printed is in its order, and all
# there when its end is reported. The signal may come before it is known which process to end. Until that process has
# become the command, a signal is lost: the handler of the shell sends it until it has an effect, since no other signal
# comes that would break the wait. A wait that the signal broke is taken up again, so that nothing of the old command
# can run beside the new one.
_SHELL = f"""
{_PROBE}
for tool in {" ".join(dict.fromkeys((*NEEDED, *TCP_NEEDED)))} taskset; do
  command -v "$tool" > /dev/null || echo "missing $tool"
done
printf '\\n{MARK} 0 0\\n'
job=
halt() {{ if [ -n "$job" ]; then kill "$job" 2> /dev/null; wait "$job"; job=; fi; }}
while read -r name command; do
  halt
  (
    child= over=
    end() {{
      over=yes
      while [ -n "$child" ] && read -r state 2> /dev/null < "/proc/$child/stat" && [ "${{state#*) Z}}" = "$state" ]; do
        kill "$child" 2> /dev/null
        sleep 0.1 2> /dev/null || sleep 1
      done
      [ -z "$child" ] || kill -TERM "-$child" 2> /dev/null
    }}
    trap end TERM
    eval "exec $command" 2>&1 &
    child=$!
    [ -z "$over" ] || end
    wait "$child"
    code=$?
    while kill -0 "$child" 2> /dev/null; do
      wait "$child"
      code=$?
    done
    printf '\\n{MARK} %s %s\\n' "$name" "$code"
  ) &
  job=$!
done
halt
"""

# perftest measures port 1 of a device, so the rate of port 1 is that of the measurement, here and above.
# of an HCA on its host, in an observer, which has the host's network; then the same as in a pod, for all of its
# functions
_HOST = r"""
functions=$1
for link in "/sys/bus/pci/devices/$1"/virtfn*; do
  [ -e "$link" ] || continue
  target=$(readlink "$link")
  echo "vf ${link##*/virtfn} ${target##*/}"
  functions="$functions ${target##*/}"
done
for function in $functions; do
  for netdev in "/sys/bus/pci/devices/$function"/net/*; do [ -e "$netdev" ] && echo "net $function ${netdev##*/}"; done
done
for state in /sys/class/infiniband/*/ports/1/state; do
  device=${state%/ports/1/state}
  [ -r "$state" ] && read -r text < "$state" && [ "$text" = "4: ACTIVE" ] && echo "active ${device##*/}"
  [ -r "$device/node_type" ] && read -r text < "$device/node_type" && [ "$text" = "4: RNIC" ] &&
    echo "rnic ${device##*/}"
done
if command -v ip > /dev/null; then
  echo "settings $(ip -j link show | tr -d '\n')"
  echo "addresses $(ip -j address show | tr -d '\n')"
fi
set -- "$functions"
"""

#: whether a pod has a GPU, and perftest takes its memory; periods in which the pod was held back from its CPUs
GPU: Command = (
    "sh",
    "-c",
    (
        "ls /dev/nvidia[0-9]* > /dev/null 2>&1 && echo gpu; ib_write_bw --help 2>&1 | grep -q -e --use_cuda && echo"
        " tool; true"
    ),
)
#: whether perftest can give its packets a flow label, which it can from 23.10 on
LABELS: Command = ("sh", "-c", "ib_write_bw --help 2>&1 | grep -q -e --flow_label && echo label; true")
#: option by which perftest sets the traffic class of its packets, by ``pods.connection``, and whether it has them
CLASS_OPTIONS = {"tcp": "tclass", "rdma_cm": "tos"}
CLASSES: Command = (
    "sh",
    "-c",
    "help=$(ib_write_bw --help 2>&1); for word in tclass tos; do case $help in *--$word*) echo $word ;; esac; done;"
    " true",
)
CPU_STAT: Command = ("sh", "-c", "cat /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat 2> /dev/null; true")


def render_host_shell(address: str) -> Command:
    """Return the command of a shell for an observer. The shell first reports the functions of an HCA: the physical
    function, its virtual functions, and their interfaces on the host. Then it runs the commands that it reads from
    stdin.

    :param address: PCI address of the physical function
    """
    return ("sh", "-c", f"{_HOST}{_SHELL}", "shell", require_operand(address, "the PCI address"))


def render_shell(address: str = "") -> Command:
    """Return the command of a shell for a pod. The shell first reports the RDMA devices of the pod, their PCI functions
    and the speed of their links. Then it runs the commands that it reads from stdin.

    :param address: PCI address of the attachment from network-status; empty if multus does not report it
    """
    return ("sh", "-c", _SHELL, "shell", require_operand(address, "the PCI address"))


def _limit_command(limit: int, *command: str) -> Command:
    return ("timeout", "--kill-after=5", str(limit), "stdbuf", "-oL", *command)


def render_ping_server(address: str, port: int, limit: int) -> Command:
    """Return the command of the rping server. With ``-d`` it prints a line when it listens. It runs without ``-v``,
    which prints the bytes that its client sent.

    :param address: address on which it listens
    :param port: TCP port on which it listens
    :param limit: time limit in seconds
    """
    return _limit_command(
        limit, "rping", "-s", "-a", require_operand(address, _SERVER), "-p", str(port), "-C", str(PINGS), "-d"
    )


def render_ping_client(address: str, port: int, limit: int) -> Command:
    """Return the command of the rping client of the server at ``address``. With ``-v`` it prints each round trip. With
    ``-V`` it first compares the bytes that the server returned with those that it sent.

    :param address: address of the server
    :param port: TCP port on which the server listens
    :param limit: time limit in seconds
    """
    return _limit_command(
        limit, "rping", "-c", "-a", require_operand(address, _SERVER), "-p", str(port), "-C", str(PINGS), "-v", "-V"
    )


def write_bandwidth(
    fabric: Fabric,
    device: str,
    cpus: str,
    port: int,
    address: str,
    server: bool,
    sweep: bool = False,
    gpu: bool = False,
    flow_label: typing.Optional[int] = None,
    pairs: int = 1,
    traffic_class: typing.Optional[int] = None,
) -> Command:
    """Return the command of ib_write_bw, as server or as client. Both sides need the same message size, duration or
    number of messages, direction, connection type and address family.

    ``-F`` suppresses warnings about the CPU clock between the lines of the table. A measurement by time excludes its
    first and last two seconds. A measurement by number of messages has a warm-up. Without ``--ipv6-addr``, perftest
    resolves and listens on IPv4 only; the option exists from 23.07 on (commit 5a218cd). ``--ipv6`` selects the GID of
    that family, from which RoCE takes its addresses.

    :param device: name of the RDMA device of this side
    :param cpus: list of CPUs to run on, in the format of taskset; empty for any
    :param port: TCP port on which the server listens
    :param address: address of the server
    :param server: whether this side is the server
    :param sweep: whether to measure all message sizes. perftest cannot do this by time
    :param gpu: whether to use the memory of the first GPU of the container
    :param flow_label: flow label of the packets; None if the driver chooses it
    :param pairs: number of queue pairs in parallel, the same on both sides
    :param traffic_class: traffic class of the packets; None if perftest sets none
    """
    pods = fabric.pods
    if sweep:
        amount: tuple[str, ...] = ("-a",) if pods.iterations is None else ("-a", "-n", str(pods.iterations))
    else:
        amount = (
            "-s",
            str(pods.message_bytes),
            *(("-D", str(pods.seconds)) if pods.iterations is None else ("-n", str(pods.iterations))),
        )
    return _limit_command(
        pods.limit_seconds,
        *(("taskset", "-c", require_operand(cpus, "the list of CPUs")) if cpus else ()),
        *(
            "ib_write_bw",
            "-d",
            require_operand(device, "the RDMA device"),
            "-p",
            str(port),
            "-F",
            "--report_gbits",
            "--perform_warm_up",
        ),
        *amount,
        *(("-q", str(pairs)) if pairs > 1 else ()),
        *(("-b",) if fabric.bandwidth.directions == "at_once" else ()),
        *(("-R",) if pods.connection == "rdma_cm" else ()),
        *(("--use_cuda=0",) if gpu else ()),
        *((f"--flow_label={flow_label}",) if flow_label is not None else ()),
        *((f"--{CLASS_OPTIONS[pods.connection]}={traffic_class}",) if traffic_class is not None else ()),
        *(("--ipv6", "--ipv6-addr") if ":" in address else ()),
        *(() if server else (require_operand(address, _SERVER),)),
    )


def write_latency(
    fabric: Fabric,
    device: str,
    cpus: str,
    port: int,
    address: str,
    server: bool,
    traffic_class: typing.Optional[int] = None,
) -> Command:
    """Return the command of ib_write_lat with messages of 8 bytes, as server or as client. Both sides need the same
    connection type and address family.

    :param fabric: fabric of the measurement, with the time limit and the connection type
    :param device: name of the RDMA device of this side
    :param cpus: list of CPUs to run on, in the format of taskset; empty for any
    :param port: TCP port on which the server listens
    :param address: address of the server
    :param server: whether this side is the server
    :param traffic_class: traffic class of the packets; None if perftest sets none
    """
    pods = fabric.pods
    return _limit_command(
        pods.limit_seconds,
        *(("taskset", "-c", require_operand(cpus, "the list of CPUs")) if cpus else ()),
        *("ib_write_lat", "-d", require_operand(device, "the RDMA device"), "-p", str(port), "-F"),
        *("-s", str(LATENCY_BYTES), "-n", str(LATENCY_MESSAGES)),
        *(("-R",) if pods.connection == "rdma_cm" else ()),
        *((f"--{CLASS_OPTIONS[pods.connection]}={traffic_class}",) if traffic_class is not None else ()),
        *(("--ipv6", "--ipv6-addr") if ":" in address else ()),
        *(() if server else (require_operand(address, _SERVER),)),
    )


def render_tcp_bandwidth(fabric: Fabric, own: str, cpus: str, port: int, server: str = "") -> Command:
    """Return the command of iperf3, as a server for one client, or as the client of the server at the address
    ``server``.

    :param own: address of this pod on the fabric. Both sides bind to their own address, so that no traffic takes
        another network
    :param cpus: list of CPUs to run on, in the format of taskset; empty for any
    :param port: TCP port of the server
    :param server: address of the server; empty for the server itself
    """
    pods = fabric.pods
    amount = ("-t", str(pods.seconds)) if pods.iterations is None else ("-n", str(pods.message_bytes * pods.iterations))
    both = ("--bidir",) if fabric.bandwidth.directions == "at_once" else ()
    return _limit_command(
        pods.limit_seconds,
        *(("taskset", "-c", require_operand(cpus, "the list of CPUs")) if cpus else ()),
        *("iperf3", "-B", require_operand(own, "the address of the pod"), "-p", str(port)),
        *(
            ("-c", require_operand(server, _SERVER), "-J", "-P", str(STREAMS), *amount, *both)
            if server
            else ("-s", "-1", "--forceflush")
        ),
    )
