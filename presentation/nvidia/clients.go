package nvidia

import "strings"

// clients are the services that keep a GPU busy, so that its MIG mode does not change: those that the operator's MIG manager stops by default
// (its clients.yaml), and that mig-parted's own hooks stop (deployments/systemd/hooks.sh).
var clients = []string{"nvsm", "nvsm-mqtt", "nvsm-core", "nvsm-api-gateway", "nvsm-notifier", "nv_peer_mem", "nvidia-dcgm", "dcgm", "dcgm-exporter"}

// cdiRefreshUnit writes the CDI specification of the GPUs, where the container toolkit of the image has it (1.18 and newer).
const cdiRefreshUnit = "nvidia-cdi-refresh.service"

func clientUnits() []string {
	var out []string
	for _, c := range clients {
		out = append(out, c+".service")
	}
	return out
}

// MIGChangeScript returns the comment and the lines that change the MIG mode or the instances. Clients that run are stopped before, and are
// started after it, also when it fails: a node that waits for a repair should still be watched. Then the CDI specification is made anew, because
// it lists the instances that were there before.
//
// The clients are started without waiting. Without it: at boot they can be ordered after this unit, and each would wait for the other.
func MIGChangeScript(comment string, lines ...string) []string {
	out := []string{
		comment,
		"stopped=",
		"start_clients() {",
		"\tfor client in $stopped; do",
		"\t\tsystemctl start --no-block \"$client\" || echo \"$client does not start again: systemctl status $client\" >&2",
		"\tdone",
		"}",
		"trap start_clients EXIT",
		"for client in " + strings.Join(clients, " ") + "; do",
		"\tif systemctl is-active --quiet \"$client.service\"; then",
		"\t\tstopped=\"$client.service $stopped\"",
		"\t\tsystemctl stop \"$client.service\"",
		"\tfi",
		"done",
	}
	return append(append(out, lines...),
		"if systemctl cat "+cdiRefreshUnit+" >/dev/null 2>&1; then",
		"\tsystemctl restart "+cdiRefreshUnit+" || echo 'the CDI specification may list GPUs of before: journalctl -u "+cdiRefreshUnit+"' >&2",
		"fi",
	)
}
