package ignition

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
)

const unitDirectory = "/etc/systemd/system/"

// findConflicts returns the places in a user's layer that conflict with what the node needs.
func (c Config) findConflicts(read types.Config, ours butane) []Finding {
	reserved := slices.Clone(c.Reserved)
	for _, f := range ours.Storage.Files {
		reserved = append(reserved, f.Path)
	}
	for _, u := range ours.Systemd.Units {
		if u.Contents != "" {
			reserved = append(reserved, unitDirectory+u.Name)
		}
	}
	out := slices.Concat(configConflicts(read), pathConflicts(read.Storage, reserved), c.argumentConflicts(read), c.userConflicts(read))
	for i, u := range read.Systemd.Units {
		if why := unitConflict(u, ours.Systemd.Units, reserved); why != "" {
			out = append(out, Finding{Path: fmt.Sprintf("systemd.units[%d]", i), Message: why})
		}
	}
	return out
}

// configConflicts finds configurations that Ignition would fetch on the node. They would be applied without these checks.
func configConflicts(read types.Config) []Finding {
	var out []Finding
	if read.Ignition.Config.Replace.Source != nil {
		out = append(out, Finding{Path: "ignition.config.replace", Message: "it would replace everything that the node needs: remove it"})
	}
	if len(read.Ignition.Config.Merge) > 0 {
		out = append(out, Finding{Path: "ignition.config.merge", Message: "what it fetches would win over what the node needs, unseen: put it into the layer itself"})
	}
	return out
}

// pathConflicts finds files, links and directories in the place of files that Ingot writes.
func pathConflicts(read types.Storage, reserved []string) []Finding {
	var out []Finding
	for i, f := range read.Files {
		if p := reservedBelow(f.Path, reserved); p != "" {
			out = append(out, Finding{Path: fmt.Sprintf("storage.files[%d].path", i), Message: p + " is written by Ingot: remove the entry"})
		}
	}
	for i, l := range read.Links {
		if p := reservedBelow(l.Path, reserved); p != "" {
			out = append(out, Finding{Path: fmt.Sprintf("storage.links[%d].path", i), Message: p + " is written by Ingot, and would go elsewhere: remove the entry"})
		}
	}
	for i, d := range read.Directories {
		if p := path.Clean(d.Path); slices.Contains(reserved, p) {
			out = append(out, Finding{Path: fmt.Sprintf("storage.directories[%d].path", i), Message: p + " is a file that is written by Ingot: remove the entry"})
		}
	}
	return out
}

// reservedBelow returns the reserved path that is at or below the path, or an empty text when there is none.
func reservedBelow(p string, reserved []string) string {
	p = path.Clean(p)
	for _, r := range reserved {
		if r == p || strings.HasPrefix(r, p+"/") {
			return r
		}
	}
	return ""
}

// argumentConflicts finds removals of kernel arguments that the node needs.
func (c Config) argumentConflicts(read types.Config) []Finding {
	var out []Finding
	for i, a := range read.KernelArguments.ShouldNotExist {
		if slices.Contains(c.KernelArguments, string(a)) {
			out = append(out, Finding{Path: fmt.Sprintf("kernel_arguments.should_not_exist[%d]", i), Message: "the GPUs' presentation needs " + string(a) + ": remove the entry"})
		}
	}
	return out
}

// userConflicts finds removals of the user that the SSH keys are for.
func (c Config) userConflicts(read types.Config) []Finding {
	var out []Finding
	for i, u := range read.Passwd.Users {
		if u.Name == user && len(c.SSHKeys) > 0 && u.ShouldExist != nil && !*u.ShouldExist {
			out = append(out, Finding{Path: fmt.Sprintf("passwd.users[%d]", i), Message: "it removes " + user + ", the user that sshKeys are authorized for: remove the entry"})
		}
	}
	return out
}

// unitConflict returns why a unit conflicts with Ingot's units, or an empty text when it does not.
func unitConflict(u types.Unit, ours []unit, reserved []string) string {
	for _, d := range u.Dropins {
		if slices.Contains(reserved, unitDirectory+u.Name+".d/"+d.Name) {
			return "its drop-in " + d.Name + " is written by Ingot: remove it, or give it another name"
		}
	}
	for _, o := range ours {
		switch {
		case o.Name != u.Name:
		case u.Mask != nil && *u.Mask:
			return u.Name + " must run: remove mask"
		case u.Enabled != nil && !*u.Enabled:
			return u.Name + " must be enabled: remove enabled"
		case u.Contents != nil && o.Contents != "":
			return u.Name + " is written by Ingot: remove its contents; a drop-in is possible"
		}
	}
	return ""
}
