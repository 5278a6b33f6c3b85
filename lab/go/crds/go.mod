// custom resource definitions that the lab serves without their operators; nothing of it is compiled
module linerate.rdma/lab/tools/crds

go 1.25.5

require (
	github.com/Mellanox/network-operator v1.4.0
	github.com/NVIDIA/gpu-operator v1.11.1
	github.com/kubeflow/trainer v1.9.4
	github.com/kubeflow/trainer/v2 v2.1.0
	github.com/openshift/api v0.0.0-20250227152946-1ee1ef831100
	sigs.k8s.io/kueue v0.15.0
)
