package containerd

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The units of a node: the check runs before kubelet starts, the report when kubelet has its credential.
const (
	// CheckUnit is the name of the unit that checks containerd's configuration before kubelet starts.
	CheckUnit = "ingot-containerd.service"
	// ReportUnit is the name of the unit that reports what the check found.
	ReportUnit = "ingot-containerd-report.service"

	checkProgramPath = "/usr/local/sbin/ingot-containerd"
)

// Units returns the units of the check and of the report; none when containerd needs nothing.
func Units(n Node) []v1alpha1.SystemdUnit {
	if !n.hasNeeds() {
		return nil
	}
	return []v1alpha1.SystemdUnit{{Name: CheckUnit, Content: checkUnit}, {Name: ReportUnit, Content: reportUnit}}
}

// checkUnit restarts containerd, so it must be done before kubelet starts. kubelet does not depend on its result: a node that lacks something is to join and
// to say so.
const checkUnit = `[Unit]
Description=Check the configuration of containerd
After=containerd.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + checkProgramPath + ` check
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
`

const reportUnit = `[Unit]
Description=Report the configuration of containerd to the cluster
After=` + CheckUnit + ` kubelet.service
StartLimitIntervalSec=0

[Service]
ExecStart=` + checkProgramPath + ` report
# The credential is there a while after kubelet has started.
Restart=on-failure
RestartSec=15

[Install]
WantedBy=multi-user.target
`

// need is one thing that must be in the configuration that containerd prints: a line that matches an extended regular expression.
type need struct{ finding, line, what string }

// needs match what containerd 1 and 2 print, whose quotes differ.
func (n Node) needs() []need {
	const quote = `["']`
	var out []need
	if n.CDI {
		out = append(out, need{v1alpha1.ContainerdCDI, `^ *enable_cdi = true$`, "enable_cdi = true"})
	}
	if n.Runtime {
		out = append(out, need{v1alpha1.ContainerdRuntime, `^ *BinaryName = ` + quote + `.*nvidia-container-runtime` + quote + `$`, "the runtime " + runtimeProgram})
	}
	if len(n.mirrors()) > 0 {
		out = append(out, need{v1alpha1.ContainerdMirrors, `^ *config_path = ` + quote + `(.*:)?` + pathHosts + `(:.*)?` + quote + `$`, "config_path = " + pathHosts})
	}
	if image := n.sandboxImage(); image != "" {
		out = append(out, need{v1alpha1.ContainerdSandbox, `^ *(sandbox|sandbox_image) = ` + quote + strings.ReplaceAll(image, ".", "[.]") + quote + `$`, "the sandbox image " + image})
	}
	return out
}

// checkProgram returns the program of both units. containerd itself is asked what it makes of all its files: the program reads no TOML but the version and the
// imports of the image's file.
//
// It restarts containerd when the configuration is another one than that of the last restart: at the first boot containerd runs before cloud-init writes the
// drop-in. It also does so when it took the drop-in away, because Ignition writes files before containerd starts.
func checkProgram(n Node) string {
	var checks strings.Builder
	for _, need := range n.needs() {
		checks.WriteString("\thas " + need.finding + " '" + strings.ReplaceAll(need.line, "'", `'\''`) + "'\n")
	}
	program := ""
	if n.Runtime {
		program = "\tprogram=$(sed -n \"s/^ *BinaryName = [\\\"']\\(.*nvidia-container-runtime\\)[\\\"']$/\\1/p\" \"$dump\" | head -n 1)\n" +
			"\tif [ -n \"$program\" ] && ! command -v \"$program\" > /dev/null; then add " + v1alpha1.ContainerdRuntime + "; fi\n"
	}
	last, alone := "", ""
	if n.Shared {
		// An agent with a containerd of its own has the same container toolkit.
		last, alone = "\tclose_toolkit\n", "\t\tclose_toolkit\n\t\techo \"${missing:-"+v1alpha1.ContainerdOK+"}\" > \"$finding\"\n"
	}
	return strings.NewReplacer("@TOOLKIT@", n.toolkitFunctions(), "@LAST@", last, "@ALONE@", alone,
		"@CHECKS@", checks.String()+program, "@ANNOTATION@", v1alpha1.AnnotationContainerd).Replace(checkScript)
}

const checkScript = `#!/bin/sh
# Written by Ingot: asks containerd for its whole configuration, and reports in an annotation of this Node what it lacks. The verdict on the node reads it.
set -eu
umask 077
main=/etc/containerd/config.toml
dropin=` + pathDropIn + `
dump=/run/ingot-containerd.toml
finding=/run/ingot-containerd
restarted=/var/lib/ingot-containerd.sha256
missing=
changed=

add() {
	case ",$missing," in
	*",$1,"*) ;;
	*) missing="$missing${missing:+,}$1" ;;
	esac
}

# set_aside takes the drop-in away: containerd does not start with it, or understands the image's own sections no more.
set_aside() {
	mv "$dropin" "$dropin.$1"
	changed=yes
}

# print_config prints what containerd runs with. Without a file of its own it reads no drop-in.
print_config() {
	if [ -e "$main" ]; then containerd config dump; else containerd config default; fi
}

has() {
	grep -Eq "$2" "$dump" || add "$1"
}
@TOOLKIT@
check() {
	if ! command -v containerd > /dev/null; then
		echo "there is no program containerd: the agent of this node has one of its own, which its own configuration sets up" >&2
@ALONE@		return
	fi
	if [ -e "$dropin" ] && [ -e "$main" ] && ! grep -Eq '^version *= *3 *(#.*)?$' "$main"; then
		set_aside ` + v1alpha1.ContainerdVersion + `
	fi
	if ! print_config > "$dump"; then
		if [ -e "$dropin" ]; then
			set_aside ` + v1alpha1.ContainerdInvalid + `
		fi
		print_config > "$dump" || add ` + v1alpha1.ContainerdInvalid + `
	fi
@CHECKS@	if [ -n "$missing" ]; then
		if [ -e "$dropin.` + v1alpha1.ContainerdVersion + `" ]; then add ` + v1alpha1.ContainerdVersion + `; fi
		if [ -e "$dropin.` + v1alpha1.ContainerdInvalid + `" ]; then add ` + v1alpha1.ContainerdInvalid + `; fi
		if [ -e "$dropin" ] && ! grep -qs '^[^#]*containerd/conf\.d/' "$main"; then add ` + v1alpha1.ContainerdImports + `; fi
		echo "containerd lacks $missing: compare containerd config dump with $dropin" >&2
	fi
@LAST@	echo "${missing:-` + v1alpha1.ContainerdOK + `}" > "$finding"
	if [ -e "$dropin" ] && ! sha256sum --check --status "$restarted" 2> /dev/null; then changed=yes; fi
	if [ -n "$changed" ]; then
		systemctl restart containerd
		sha256sum "$dump" > "$restarted"
	fi
}

report() {
	if [ ! -e "$finding" ]; then return; fi
	boot=$(cat /proc/sys/kernel/random/boot_id)
	# kubelet writes the first after a TLS bootstrap, kubeadm the second.
	config=/var/lib/kubelet/kubeconfig
	if [ ! -e "$config" ]; then config=/etc/kubernetes/kubelet.conf; fi
	server=$(sed -n 's/^ *server: *//p' "$config" | head -n 1)
	exec curl --fail --silent --show-error --max-time 20 --output /dev/null --request PATCH \
		--cacert /etc/kubernetes/pki/ca.crt --cert /var/lib/kubelet/pki/kubelet-client-current.pem \
		--header 'Content-Type: application/merge-patch+json' \
		--data "{\"metadata\":{\"annotations\":{\"@ANNOTATION@\":\"$boot $(cat "$finding")\"}}}" \
		"$server/api/v1/nodes/$(uname -n)"
}

"$1"
`
