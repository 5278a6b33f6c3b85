module linerate.rdma/lab/tools/whereabouts

go 1.25.0

tool github.com/k8snetworkplumbingwg/whereabouts/cmd

require github.com/k8snetworkplumbingwg/whereabouts v0.9.4
