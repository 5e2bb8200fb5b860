package nvidia

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Names on the node.
const (
	// ModeUnit sets the mode of the GPUs at every boot before kubelet.
	ModeUnit = "ingot-gpu-mode.service"

	fabricManager = "nvidia-fabricmanager.service"
	modeScript    = "/usr/local/sbin/ingot-gpu-mode"
)

// blacklistNouveau keeps the free driver off the GPUs, in the initramfs too.
const blacklistNouveau = "modprobe.blacklist=nouveau"

// Node plans a node whose GPUs get their mode from a script before kubelet starts. The mode is the script's lines, the
// first of them a comment that says what it does. The expectation has the driver; what is advertised is up to the caller.
func Node(r plan.Request, model catalogue.Model, mode []string) plan.Plan {
	fabric := model.HasNVSwitch(r.GPU.Count)
	units := []plan.Unit{{Name: "nvidia-persistenced.service"}}
	if fabric {
		units = append(units, plan.Unit{Name: fabricManager})
	}
	blacklist := []string{"nouveau"}
	if model.MIGModePersists() {
		blacklist = append(blacklist, "nvidia_drm")
	}
	return plan.Plan{
		KernelArguments: []string{blacklistNouveau},
		Modules:         plan.Modules{Load: []string{"nvidia", "nvidia_uvm", "nvidia_modeset"}, Blacklist: blacklist},
		Files:           []plan.File{{Path: modeScript, Mode: "0755", Content: script(mode, fabric)}},
		Units:           append(units, plan.Unit{Name: ModeUnit, Content: unit(fabric)}),
		Expectation: plan.Expectation{Labels: []plan.Label{{
			Check: "software/gpu-driver", Key: "nvidia.com/cuda.driver-version.full", Value: r.Image.Software.GPUDriver.Version,
			Hint: "the driver that runs is not the one that the OSImage names: correct software.gpuDriver.version, or rebuild the image with the driver held",
		}}},
	}
}

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

func script(mode []string, fabric bool) string {
	lines := append([]string{"#!/bin/sh", mode[0], "set -eu"}, mode[1:]...)
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

// MIGOff is the mode in which every GPU is whole, and makes sure of it. On Ampere a new mode takes effect at a GPU reset
// only, which nvidia-smi does itself unless something uses the GPU.
func MIGOff() []string {
	return []string{
		"# Turn the MIG mode off on every GPU before kubelet starts. It outlives a re-image on some GPUs.",
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
}

// refuse is a refusal for which the NodeType's condition has no reason of its own.
func refuse(rule, format string, args ...any) error {
	return plan.Refuse(v1alpha1.ReasonPresentationInvalid, rule, format, args...)
}
