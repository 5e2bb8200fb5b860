package gpumode

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// ReportUnitName is the name of the systemd unit that reports the mode of the GPUs.
const ReportUnitName = "ingot-gpu-report.service"

const reportScriptPath = "/usr/local/sbin/ingot-gpu-report"

// ReportFileAndUnit returns a script that reports the mode of every GPU in an annotation of the Node, and its unit. query prints the modes, one a line.
//
// The channel is kubelet's own credential: the API server's NodeRestriction lets it write this Node and no other, and the script needs no secret of its own.
// kubelet's --node-labels are no channel, because kubelet applies them only when it creates the Node, and the report is another in each boot. Nothing
// requires the unit: a node that cannot report joins all the same.
func ReportFileAndUnit(query string) (v1alpha1.NodeFile, v1alpha1.SystemdUnit) {
	script := []string{
		"#!/bin/sh",
		"# Report the mode of every GPU in an annotation of this Node, with kubelet's own credential. The verdict on the node reads it.",
		"set -eu",
		"boot=$(cat /proc/sys/kernel/random/boot_id)",
		"modes=$(" + query + " | tr -cd 'A-Za-z/\\n' | tr '\\n' ' ')",
		"# kubelet writes the first after a TLS bootstrap, kubeadm the second.",
		"config=/var/lib/kubelet/kubeconfig",
		"if [ ! -e \"$config\" ]; then config=/etc/kubernetes/kubelet.conf; fi",
		"server=$(sed -n 's/^ *server: *//p' \"$config\" | head -n 1)",
		"exec curl --fail --silent --show-error --max-time 20 --output /dev/null --request PATCH \\",
		"\t--cacert /etc/kubernetes/pki/ca.crt --cert /var/lib/kubelet/pki/kubelet-client-current.pem \\",
		"\t--header 'Content-Type: application/merge-patch+json' \\",
		"\t--data \"{\\\"metadata\\\":{\\\"annotations\\\":{\\\"" + v1alpha1.AnnotationGPUMode + "\\\":\\\"$boot ${modes% }\\\"}}}\" \\",
		"\t\"$server/api/v1/nodes/$(uname -n)\"",
		"",
	}
	unit := []string{
		"[Unit]",
		"Description=Report the mode of the GPUs to the cluster",
		"After=" + UnitName + " kubelet.service",
		"StartLimitIntervalSec=0",
		"",
		"[Service]",
		"ExecStart=" + reportScriptPath,
		"# The credential is there a while after kubelet has started.",
		"Restart=on-failure",
		"RestartSec=15",
		"",
		"[Install]",
		"WantedBy=multi-user.target",
		"",
	}
	return v1alpha1.NodeFile{Path: reportScriptPath, Mode: "0755", Content: strings.Join(script, "\n")}, v1alpha1.SystemdUnit{Name: ReportUnitName, Content: strings.Join(unit, "\n")}
}
