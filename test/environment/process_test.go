package environment

import (
	"strings"
	"testing"
)

func TestAProcessThatEndedByItselfSaysWhy(t *testing.T) {
	for script, want := range map[string]string{
		"echo begin; echo 'the port is taken'; exit 3": "manager ended: exit status 3; its log ",
		"echo 'the port is taken'":                     "manager ended: it exited although nobody asked it to; its log ",
	} {
		p, err := StartProcess(t.TempDir(), "manager", "/bin/sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		p.done <- <-p.done // it has ended
		if exited, err := p.Exited(); !exited || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "ends with: the port is taken") {
			t.Errorf("%q: %v", script, err)
		}
	}
}
