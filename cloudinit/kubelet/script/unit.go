package script

import "strings"

// UnitContent returns the unit that runs the script. gpuUnits must have run before it, and before are lines of the service that come first, such as those
// that find the node's address.
//
// The script is started by a shell, because SELinux lets systemd itself start no program that has the label of a file in /etc. Its output goes to the
// journal alone, since it may show what is secret; the console is told that it failed, and where to look.
func UnitContent(gpuUnits []string, before string) string {
	after := strings.Join(append([]string{"network-online.target", "containerd.service"}, gpuUnits...), " ")
	return `[Unit]
Description=Join the cluster by the script of its TenantCluster (written by Ingot)
Wants=network-online.target
After=` + after + `
ConditionPathExists=` + Path + `
StartLimitIntervalSec=0

[Service]
Type=oneshot
` + before + `EnvironmentFile=` + EnvironmentPath + `
ExecStart=/bin/sh -c 'exec ` + Path + `'
ExecStartPost=/bin/rm -f ` + Path + " " + EnvironmentPath + `
ExecStopPost=-/bin/sh -c '[ "$SERVICE_RESULT" = success ] || echo "ingot: the join script of this node has failed ($EXIT_STATUS) and runs again: journalctl -u ` + strings.TrimSuffix(Unit, ".service") + `" > /dev/console'
Restart=on-failure
RestartSec=30

[Install]
WantedBy=multi-user.target
`
}
