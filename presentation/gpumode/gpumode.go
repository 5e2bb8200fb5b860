package gpumode

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Unit sets the mode of the accelerators.
const Unit = "ingot-gpu-mode.service"

const script = "/usr/local/sbin/ingot-gpu-mode"

// Mode is the script and the unit that set a mode. The mode is lines of shell, the first of them a comment that says what
// it does. The vendor's units come first.
func Mode(mode []string, vendors ...v1alpha1.SystemdUnit) (v1alpha1.NodeFile, v1alpha1.SystemdUnit) {
	lines := append([]string{"#!/bin/sh", mode[0], "set -eu"}, mode[1:]...)
	return v1alpha1.NodeFile{Path: script, Mode: "0755", Content: strings.Join(append(lines, ""), "\n")}, v1alpha1.SystemdUnit{Name: Unit, Content: unit(vendors)}
}

func unit(vendors []v1alpha1.SystemdUnit) string {
	after := "systemd-modules-load.service"
	for _, u := range vendors {
		after += " " + u.Name
	}
	return strings.Join([]string{
		"[Unit]",
		"Description=Set the GPU mode that this node was ordered with",
		"Wants=" + after,
		"After=" + after,
		"Before=kubelet.service",
		"",
		"[Service]",
		"Type=oneshot",
		"RemainAfterExit=yes",
		"TimeoutStartSec=480",
		"ExecStart=" + script,
		"",
		"[Install]",
		"WantedBy=multi-user.target",
		"RequiredBy=kubelet.service",
		"",
	}, "\n")
}
