module linerate.rdma/lab/tools/device-plugin

go 1.25.0

tool github.com/k8snetworkplumbingwg/sriov-network-device-plugin/cmd/sriovdp

require github.com/k8snetworkplumbingwg/sriov-network-device-plugin v0.0.0-20221127172732-a5a7395122e3

replace (
	github.com/containernetworking/cni => github.com/containernetworking/cni v0.8.1
	github.com/gogo/protobuf => github.com/gogo/protobuf v1.3.2
)
