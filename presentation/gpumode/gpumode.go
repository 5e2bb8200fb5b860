package gpumode

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// UnitName is the name of the systemd unit that sets the mode of the GPUs.
const UnitName = "ingot-gpu-mode.service"

const scriptPath = "/usr/local/sbin/ingot-gpu-mode"

// FileAndUnit returns a script and the unit that runs it. The lines are shell; the first is a comment that says what the script
// does. The unit starts after the vendor's units.
func FileAndUnit(mode []string, vendorUnits ...v1alpha1.SystemdUnit) (v1alpha1.NodeFile, v1alpha1.SystemdUnit) {
	lines := append([]string{"#!/bin/sh", mode[0], "set -eu"}, mode[1:]...)
	return v1alpha1.NodeFile{Path: scriptPath, Mode: "0755", Content: strings.Join(append(lines, ""), "\n")}, v1alpha1.SystemdUnit{Name: UnitName, Content: unitContent(vendorUnits)}
}

// StartBefore returns the unit so that the services start after it at boot. Without it: a service that uses the GPUs starts while their mode changes,
// which fails.
func StartBefore(unit v1alpha1.SystemdUnit, services ...string) v1alpha1.SystemdUnit {
	const before = "Before=kubelet.service\n"
	unit.Content = strings.Replace(unit.Content, before, before+"Before="+strings.Join(services, " ")+"\n", 1)
	return unit
}

func unitContent(vendorUnits []v1alpha1.SystemdUnit) string {
	after := "systemd-modules-load.service"
	for _, u := range vendorUnits {
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
		"ExecStart=" + scriptPath,
		"",
		"[Install]",
		"WantedBy=multi-user.target",
		"RequiredBy=kubelet.service",
		"",
	}, "\n")
}
