package kubelet

import "strings"

const (
	// nodeIPFile is what the script writes and kubelet's unit reads: systemd reads the environment again before each command of a unit
	// (systemd.exec(5), EnvironmentFile).
	nodeIPFile = "/run/ingot-node-ip.env"
	// nodeIPVariable is the variable in it. systemd splits $NAME into words, and into none when it is empty (systemd.service(5), "Command lines").
	nodeIPVariable = "INGOT_NODE_IP"
)

// nodeIPCommands run the program, and read what it wrote.
const nodeIPCommands = "ExecStartPre=/bin/sh " + pathNodeIP + "\nEnvironmentFile=-" + nodeIPFile + "\n"

// nodeIPScript returns the program that finds the node's own address in each network, and writes them with the prefix. It runs before each start of kubelet: a lease may be another one
// after a boot. It fails when there is no address, and systemd starts kubelet again 10 s later. Without it: kubelet starts before the network has its
// address, takes that of another network, and pods of other nodes cannot reach the node.
func nodeIPScript(networks []string, prefix string) string {
	return `#!/bin/sh
# Written by Ingot: finds the addresses of this node that kubelet reports, one in each of the TenantCluster's nodeNetworks.
set -eu
found=
for network in ` + strings.Join(networks, " ") + `; do
	set -- $(ip -o address show to "$network" scope global)
	address=${4:-}
	address=${address%%/*}
	if [ -z "$address" ]; then
		echo "no interface has an address in $network, which spec.nodeNetworks of the TenantCluster names: look at the network of this server" >&2
		exit 1
	fi
	found="$found${found:+,}$address"
done
echo "` + nodeIPVariable + `=` + prefix + `$found" > ` + nodeIPFile + `
`
}
