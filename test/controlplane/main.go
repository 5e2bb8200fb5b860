package main

import (
	"fmt"
	"os"
	"path/filepath"

	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
)

const usage = `Usage:
  ingot-controlplane run --dir DIR [flags]   run a control plane
  ingot-controlplane run --help              list the flags

Invoked as etcd or kube-apiserver it is that program.
`

func main() {
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		runEtcd()
	case "kube-apiserver":
		runAPIServer()
	default:
		runSelf(os.Args[1:])
	}
}

func runSelf(args []string) {
	if len(args) == 0 || args[0] != "run" {
		_, _ = fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(args[1:], os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(originalStderr(), "ingot-controlplane:", err)
		os.Exit(1)
	}
}
