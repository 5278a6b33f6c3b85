// Copyright: (c) 2026, The linerate.rdma authors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// An API server and a kubelet that can do nothing but exec: the code of both that is on the way of its bytes, without all else. A container is a process
// of this machine; one of the name "played" is none, since a thousand nodes have processors of their own, and this machine has not.
// exec_rig.py builds it, from the modules of the lab's control plane.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	protocol "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apiserver/pkg/util/proxy"
	client "k8s.io/client-go/tools/remotecommand"
	kubelet "k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// What clients ask for before anything else.
var discovery = map[string]string{
	"/version": `{"kind": "Version", "major": "1", "minor": "34", "gitVersion": "v1.34.4"}`,
	"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
		{"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["get"]}]}`,
	"/apis": `{"kind": "APIGroupList", "groups": []}`,
}

// A pod, which kubectl looks at before it runs something there.
const pod = `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": %q, "namespace": "observers"},
	"spec": {"containers": [{"name": "observer"}]}, "status": {"phase": "Running"}}`

type runtime struct {
	latency time.Duration
	answer  []byte
}

// As container runtimes do it, stdin is copied beside the process, and nobody waits for its end.
func (r runtime) ExecInContainer(ctx context.Context, _ string, _ types.UID, name string, command []string, in io.Reader, out, errors_ io.WriteCloser,
	_ bool, _ <-chan client.TerminalSize, _ time.Duration) error {
	time.Sleep(r.latency)
	if name == "played" {
		return r.play(in, out, errors_)
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	stdin, err := process.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(stdin, in)
		_ = stdin.Close()
	}()
	process.Stdout, process.Stderr = out, errors_
	err = process.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return &utilexec.ExitErrorWrapper{ExitError: ended}
	}
	return err
}

// What the shell of _parse/pods/framing.py says around a command that takes its stdin and prints the answer.
func (r runtime) play(in io.Reader, out, errors_ io.Writer) error {
	_, _ = io.WriteString(out, "@linerate-begin\n")
	said := bufio.NewReader(in)
	var token string
	var size int64
	_, err := fmt.Fscanf(said, "%s %d\n", &token, &size)
	if err == nil {
		_, err = io.CopyN(io.Discard, said, size)
	}
	if err == nil {
		end := fmt.Sprintf("\n@linerate-end %s 0\n", token)
		_, _ = out.Write(r.answer)
		_, _ = io.WriteString(out, end)
		_, _ = io.WriteString(errors_, end)
		_, err = said.ReadString('\n')
	}
	if err == nil {
		_, _ = fmt.Fprintf(out, "\n@linerate-heard %s\n", token)
		_, err = said.ReadString('\n')
	}
	return err
}

func asked(query url.Values, name string) bool {
	found, _ := strconv.ParseBool(query.Get(name))
	return found
}

func main() {
	latency := flag.Duration("latency", 0, "before the process of an exec starts")
	played := flag.String("played", "", "file with what a container without a process prints")
	flag.Parse()
	answer, err := os.ReadFile(*played)
	if err != nil {
		log.Fatal(err)
	}
	container := runtime{*latency, answer}
	node := func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		streams := &kubelet.Options{Stdin: asked(query, "stdin"), Stdout: asked(query, "stdout"), Stderr: asked(query, "stderr")}
		kubelet.ServeExec(w, r, container, "", "", query.Get("container"), query["command"], streams, 4*time.Hour, 30*time.Second, protocol.SupportedStreamingProtocols)
	}
	listen := func() net.Listener {
		found, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		return found
	}
	nodes, api := listen(), listen()
	go func() { log.Fatal(http.Serve(nodes, http.HandlerFunc(node))) }()
	fmt.Printf("http://%s\n", api.Addr())
	log.Fatal(http.Serve(api, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, known := discovery[r.URL.Path]
		if place, name := path.Split(r.URL.Path); place == "/api/v1/namespaces/observers/pods/" {
			said, known = fmt.Sprintf(pod, name), true
		}
		if known {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, said)
			return
		}
		offered := strings.Split(strings.ReplaceAll(r.Header.Get("Sec-WebSocket-Protocol"), " ", ""), ",")
		if !slices.Contains(offered, protocol.StreamProtocolV5Name) {
			// as before release 1.30, the bytes are the kubelet's
			node(w, r)
			return
		}
		query := r.URL.Query()
		place := &url.URL{Scheme: "http", Host: nodes.Addr().String(), Path: r.URL.Path, RawQuery: r.URL.RawQuery}
		streams := proxy.Options{Stdin: asked(query, "stdin"), Stdout: asked(query, "stdout"), Stderr: asked(query, "stderr")}
		proxy.NewStreamTranslatorHandler(place, http.DefaultTransport, 0, streams).ServeHTTP(w, r)
	})))
}
