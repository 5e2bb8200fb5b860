package main

import (
	"strings"
	"testing"
)

func TestALinkIsTheProgramOfItsName(t *testing.T) {
	for name, want := range map[string]string{"etcd": "etcd Version: 3.", "kube-apiserver": "Kubernetes v"} {
		output, err := command(t.Context(), t, name, "--version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(output), want) {
			t.Errorf("%s --version: %v: %s", name, err, output)
		}
	}
}
