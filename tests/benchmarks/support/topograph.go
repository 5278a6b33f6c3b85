// SPDX-License-Identifier: GPL-3.0-or-later

// Times the parser of topograph: see topograph.py, which builds it outside of this folder.
package main

import (
	"encoding/json"
	"os"
	"strconv"
	"syscall"

	"github.com/NVIDIA/topograph/pkg/ib"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func processor() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	must(err)
	rounds, err := strconv.Atoi(os.Args[2])
	must(err)
	seconds, found := []float64{}, 0
	for range rounds {
		before := processor()
		switches, hcas, err := ib.ParseIbnetdiscoverFile(data)
		must(err)
		seconds, found = append(seconds, processor()-before), len(switches)+len(hcas)
	}
	must(json.NewEncoder(os.Stdout).Encode([]any{seconds, found}))
}
