package cloudinit

import (
	"errors"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

func TestACommandThatEndsTheScriptOfRuncmdIsFound(t *testing.T) {
	for command, verb := range map[string]string{
		`exit`:                  "exit",
		`exit 0`:                "exit",
		"\"exit\\t0\"":          "exit",
		`"exit;"`:               "exit",
		`"  exec true"`:         "exec",
		`[exec, true]`:          "exec",
		`[exit]`:                "exit",
		`[systemctl, exit]`:     "",
		`[]`:                    "",
		`""`:                    "",
		`exiting`:               "",
		`systemctl exit`:        "",
		`"exit 0\ntrue"`:        "",
		`"exit 0\n"`:            "exit",
		`";exit"`:               "exit",
		`"test -f a || exit 1"`: "",
	} {
		err := Validate([]Layer{{Name: "layer", Text: "#cloud-config\nruncmd:\n- " + command + "\n"}}, nil, v1alpha1.NodePlan{})
		want := ""
		if verb != "" {
			want = "layer: runcmd[0]: " + verb + " ends the script that all of runcmd is, before kubelet is started: put it into a script of its own with write_files"
		}
		var conflict *Conflict
		switch {
		case verb == "" && err != nil:
			t.Errorf("%s: %v", command, err)
		case verb != "" && (!errors.As(err, &conflict) || len(conflict.Findings) != 1 || conflict.Findings[0].String() != want):
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
}

func TestTheDefaultUserIsKeptWhereKeysAreAuthorizedForIt(t *testing.T) {
	for users, kept := range map[string]bool{
		"[default]": true, "[ops, default]": true, "[{name: default}]": true, "[ops]": false, "[{name: ops}]": false, "[{uid: 7}]": false, "ops": true,
	} {
		text := []Layer{{Name: "layer", Text: "#cloud-config\nusers: " + users + "\n"}}
		if err := Validate(text, nil, v1alpha1.NodePlan{}); err != nil {
			t.Errorf("%s without keys: %v", users, err)
		}
		var conflict *Conflict
		if err := Validate(text, []string{"ssh-ed25519 AAAA ops"}, v1alpha1.NodePlan{}); errors.As(err, &conflict) == kept {
			t.Errorf("%s with keys: %v", users, err)
		}
	}
}

func TestAKeyOfAPropertyNeedsTheDefaultUserToo(t *testing.T) {
	in := Input{
		Layers:     []Layer{{Name: "layer", Text: "#cloud-config\nusers: [ops]\n"}},
		Properties: []properties.Level{{Name: "NodeType h100", Values: map[string]string{properties.SSHKeys: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDev dev\n"}}},
	}
	var conflict *Conflict
	if err := Check(in); !errors.As(err, &conflict) || conflict.Findings[0].Path != "users" {
		t.Errorf("got %v", err)
	}
}
