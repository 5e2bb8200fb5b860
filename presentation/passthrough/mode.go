package passthrough

import "strings"

// Names on the node.
const (
	fabricManager = "nvidia-fabricmanager.service"
	modeUnit      = "ingot-gpu-mode.service"
	modeScript    = "/usr/local/sbin/ingot-gpu-mode"
)

// unit applies the GPU mode at every boot before kubelet, as a oneshot that kubelet requires.
func unit(fabric bool) string {
	after := "systemd-modules-load.service nvidia-persistenced.service"
	if fabric {
		after += " " + fabricManager
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
		"ExecStart=" + modeScript,
		"",
		"[Install]",
		"WantedBy=multi-user.target",
		"RequiredBy=kubelet.service",
		"",
	}, "\n")
}

// script turns the MIG mode off and makes sure that it is off. On Ampere a new mode takes effect at a GPU reset only,
// which nvidia-smi does itself unless something uses the GPU.
func script(fabric bool) string {
	lines := []string{
		"#!/bin/sh",
		"# Turn the MIG mode off on every GPU before kubelet starts. It outlives a re-image on some GPUs.",
		"set -eu",
		"wrong() {",
		"\tnvidia-smi --query-gpu=index,mig.mode.current --format=csv,noheader | grep -v ', Disabled$'",
		"}",
		"nvidia-smi -mig 0",
		"if wrong >/dev/null; then",
		"\tnvidia-smi --gpu-reset",
		"fi",
		"if left=$(wrong); then",
		"\techo \"MIG mode is not off (GPU, mode): $left\" >&2",
		"\texit 1",
		"fi",
	}
	if fabric {
		lines = append(lines,
			"if ! systemctl is-active --quiet "+fabricManager+"; then",
			"\techo 'the fabric manager does not run; its version must equal the driver'\"'\"'s: journalctl -u "+fabricManager+"' >&2",
			"\texit 1",
			"fi",
		)
	}
	return strings.Join(append(lines, ""), "\n")
}
