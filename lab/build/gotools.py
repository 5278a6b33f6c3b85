# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes, the operators and their helpers, compiled from Go modules at exact versions (lab/go/*/go.mod)."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import typing

from dev.steps import StepError, say, step

from ..cache import cached
from ..run import run

PINS = pathlib.Path(__file__).parent.parent / "go"
KUBERNETES = "v1.34.4"
# without these the server calls itself v0.0.0-master and Helm's version checks fail
VERSION_FLAGS = " ".join(
    f"-X {package}={value}"
    for package, value in (
        ("k8s.io/component-base/version.gitVersion", KUBERNETES),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "34"),
        ("k8s.io/client-go/pkg/version.gitVersion", KUBERNETES),
    )
)
ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false -mod=readonly"}


@dataclasses.dataclass(frozen=True)
class Tool:
    """A binary, the folder of lab/go that pins it, and its package.

    :ivar ready: pattern that a ready binary's own version output must show, to be taken instead of compiled
    :ivar variables: that its own build sets at linking
    :ivar tags: of its own build
    """

    module: str
    package: str
    ready: typing.Optional[str] = None
    variables: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """How ``go build`` calls the binary: by the last part of the package's path that is no major version."""
        return next(part for part in reversed(self.package.split("/")) if not re.fullmatch(r"v[2-9]|v[1-9]\d+", part))


#: folder of lab/go with what runs in every lab
CLUSTER = "cluster"
OPERATOR = "github.com/k8snetworkplumbingwg/sriov-network-operator"
DISCOVERY = "sigs.k8s.io/node-feature-discovery"
NETWORK_OPERATOR = "github.com/Mellanox/network-operator"
MACHINE_CONFIG = "github.com/openshift/machine-config-operator"
#: that it tells, and by which its controller knows what was made for it
MACHINE_CONFIG_VERSION = "v0.0.1-0.20230724174830-7b54f1dcce4e"
LIFECYCLE = "github.com/operator-framework/operator-lifecycle-manager"
#: where its chart mounts what it looks at, and the version that it tells
DISCOVERY_VARIABLES = (f"{DISCOVERY}/pkg/utils/hostpath.pathPrefix=/host-", f"{DISCOVERY}/pkg/version.version=v0.18.2")
TOOL = {
    "etcd": Tool(CLUSTER, "go.etcd.io/etcd/server/v3", r"etcd Version: 3\.[56]\."),
    "kube-apiserver": Tool(CLUSTER, "k8s.io/kubernetes/cmd/kube-apiserver", r"v1\.34\."),
    "kube-controller-manager": Tool(CLUSTER, "k8s.io/kubernetes/cmd/kube-controller-manager", r"v1\.34\."),
    "kube-scheduler": Tool(CLUSTER, "k8s.io/kubernetes/cmd/kube-scheduler", r"v1\.34\."),
    "kubelet": Tool(CLUSTER, "k8s.io/kubernetes/cmd/kubelet"),
    "sriov-network-operator": Tool(CLUSTER, OPERATOR),
    "sriov-network-config-daemon": Tool(CLUSTER, f"{OPERATOR}/cmd/sriov-network-config-daemon"),
    "sriov-network-operator-config-cleanup": Tool(CLUSTER, f"{OPERATOR}/cmd/sriov-network-operator-config-cleanup"),
    "sriov-network-webhook": Tool(CLUSTER, f"{OPERATOR}/cmd/webhook"),
    "sriovdp": Tool("device-plugin", "github.com/k8snetworkplumbingwg/sriov-network-device-plugin/cmd/sriovdp"),
    "multus": Tool(CLUSTER, "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"),
    "whereabouts": Tool(CLUSTER, "github.com/k8snetworkplumbingwg/whereabouts/cmd"),
    "nfd-master": Tool(CLUSTER, f"{DISCOVERY}/cmd/nfd-master", variables=DISCOVERY_VARIABLES),
    "nfd-worker": Tool(CLUSTER, f"{DISCOVERY}/cmd/nfd-worker", variables=DISCOVERY_VARIABLES),
    "helm": Tool(CLUSTER, "helm.sh/helm/v3/cmd/helm", r"Version:\"v3\."),
    "training-operator": Tool("training-operator", "github.com/kubeflow/training-operator/cmd/training-operator.v1"),
    "trainer": Tool("trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"),
    "jobset": Tool("trainer", "sigs.k8s.io/jobset"),
    "kueue": Tool("kueue", "sigs.k8s.io/kueue/cmd/kueue"),
    "network-operator": Tool("network-operator", NETWORK_OPERATOR),
    # the tags leave out what needs C: it takes no image from a registry
    "machine-config-controller": Tool(
        "machine-config",
        f"{MACHINE_CONFIG}/cmd/machine-config-controller",
        variables=tuple(f"{MACHINE_CONFIG}/pkg/version.{name}={MACHINE_CONFIG_VERSION}" for name in ("Raw", "Hash")),
        tags=("containers_image_openpgp", "exclude_graphdriver_btrfs", "exclude_graphdriver_devicemapper"),
    ),
    "olm": Tool("olm", f"{LIFECYCLE}/cmd/olm"),
    "catalog": Tool("olm", f"{LIFECYCLE}/cmd/catalog"),
    # the tags leave out what needs C: it takes no image from a registry
    "opm": Tool(
        "operator-registry",
        "github.com/operator-framework/operator-registry/cmd/opm",
        tags=("json1", "containers_image_openpgp"),
    ),
    "kwok": Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", r"v0\.7\."),
}

#: how Go says that a download did not come to its end
_BROKEN_OFF = re.compile("TLS handshake timeout|i/o timeout|connection reset by peer|unexpected EOF")
_ATTEMPTS = 3


def binary(name: str) -> pathlib.Path:
    """Path of the binary: a ready one from KUBEBUILDER_ASSETS or PATH where its version fits, else compiled and
    cached."""
    tool = TOOL[name]
    found = _ready(name, tool)
    if found:
        return found
    folder = PINS / tool.module
    beside = {other: candidate for other, candidate in TOOL.items() if candidate.module == tool.module}

    def build(target: pathlib.Path) -> None:
        missing = {other: candidate for other, candidate in beside.items() if not _ready(other, candidate)}
        with step(f"compile {', '.join(missing)}"):
            _compile(folder, list(missing.values()), target)
        for other, candidate in missing.items():
            (target / candidate.output).rename(target / other)

    return cached(f"tools-{tool.module}", [folder, *flags(list(beside.values()))], build) / name


def flags(tools: typing.Sequence[Tool]) -> list[str]:
    """Arguments of ``go build`` for tools of one module. A variable of a package that is not in a binary is passed over
    at its linking."""
    linked = " ".join(
        ["-s -w", VERSION_FLAGS, *dict.fromkeys(f"-X {variable}" for tool in tools for variable in tool.variables)]
    )
    tags = list(dict.fromkeys(tag for tool in tools for tag in tool.tags))
    return ["-trimpath", *(("-tags", ",".join(tags)) if tags else ()), "-ldflags", linked]


def module_folder(module: str, path: str) -> pathlib.Path:
    """Source folder of a Go module in the module cache, fetched when it is not there; for the charts and CRDs that it
    brings.

    :param module: folder of lab/go that pins it
    """
    folder = PINS / module
    run(["go", "mod", "download", path], cwd=folder, env=ENVIRONMENT, remedy="is the Go module proxy reachable?")
    return pathlib.Path(run(["go", "list", "-m", "-f", "{{.Dir}}", path], cwd=folder, env=ENVIRONMENT).strip())


def _compile(folder: pathlib.Path, tools: typing.Sequence[Tool], target: pathlib.Path) -> None:
    """Compile tools of one module at once: what they share is compiled once, and one is linked while another is
    compiled.

    A download that breaks off is asked for again: beside other work a connection may not get the processor in time, and
    Go keeps what it has.
    """
    command = ["go", "build", *flags(tools), "-o", f"{target}/", *(tool.package for tool in tools)]
    remedy = "is the Go module proxy reachable, and is 'go version' 1.25 or newer? 'make lab' goes on where it stopped"
    for left in reversed(range(_ATTEMPTS)):
        try:
            run(command, cwd=folder, env=ENVIRONMENT, limit=3600, remedy=remedy)
            return
        except StepError as error:
            if not left or not _BROKEN_OFF.search(str(error)):
                raise
            say("a download broke off; the build goes on where it stopped")


def _ready(name: str, tool: Tool) -> typing.Optional[pathlib.Path]:
    if tool.ready is None:
        return None
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    found = shutil.which(name, path=os.pathsep.join(filter(None, [assets, os.environ.get("PATH", "")])))
    if not found:
        return None
    argument = "version" if name == "helm" else "--version"
    answer = subprocess.run([found, argument], capture_output=True, text=True, timeout=30, check=False)
    if re.search(tool.ready, answer.stdout):
        return pathlib.Path(found)
    say(f"{found} is not the version that the lab needs; compiling its own")
    return None


def check_go() -> None:
    """:raises StepError: no Go, or one older than 1.25"""
    version = re.search(r"go1\.(\d+)", run(["go", "version"], remedy="install Go 1.25 or newer"))
    if not version or int(version.group(1)) < 25:
        raise StepError("Go 1.25 or newer is needed", "install it from your package source and put it first in PATH")
