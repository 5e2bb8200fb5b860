package containerd

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Settings of NVIDIA's container toolkit that are false where it gives no device to a container that is not privileged: neither for the variable
// NVIDIA_VISIBLE_DEVICES, nor for volumes below /var/run/nvidia-container-devices. The first is true by default.
const (
	environmentSetting = "accept-nvidia-visible-devices-envvar-when-unprivileged"
	volumesSetting     = "accept-nvidia-visible-devices-as-volume-mounts"
)

// toolkitFunctions returns the shell functions that set NVIDIA's container toolkit; none unless tenants share the node.
func (n Node) toolkitFunctions() string {
	if !n.Shared {
		return ""
	}
	return strings.ReplaceAll(toolkitScript, "@FINDING@", v1alpha1.ContainerdEnvironment)
}

// toolkitScript asks the toolkit what it makes of its configuration, because a member that is absent has its default. The toolkit reads the file for each
// container, so nothing is restarted.
const toolkitScript = `
# is_toolkit_closed knows that nvidia-ctk prints a member that has its default as a comment.
is_toolkit_closed() {
	settings=$(nvidia-ctk config) &&
		echo "$settings" | grep -q '^` + environmentSetting + ` = false$' &&
		echo "$settings" | grep -q '^#*` + volumesSetting + ` = false$'
}

# close_toolkit has NVIDIA's container toolkit ignore the environment and the volumes of containers that are not privileged.
close_toolkit() {
	if ! command -v nvidia-ctk > /dev/null; then
		if command -v nvidia-container-runtime > /dev/null; then add @FINDING@; fi
		return 0
	fi
	if ! is_toolkit_closed; then
		(umask 022 && nvidia-ctk config --in-place --set ` + environmentSetting + `=false \
			--set ` + volumesSetting + `=false) || true
	fi
	if ! is_toolkit_closed; then
		add @FINDING@
		echo "NVIDIA's container toolkit gives devices for NVIDIA_VISIBLE_DEVICES: compare nvidia-ctk config" >&2
	fi
}
`
