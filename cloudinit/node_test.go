package cloudinit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/test/require"
)

const nodeIPProgram = "/etc/kubernetes/ingot-node-ip"

func TestKubeletIsGivenTheClustersDNS(t *testing.T) {
	in := plain()
	in.Node.ClusterDNS, in.Node.ClusterDomain = []string{"10.96.0.10", "fd00::a"}, "tenant.example"
	var config kubeletconfig.KubeletConfiguration
	files := written(t, in)
	if err := sigsyaml.UnmarshalStrict([]byte(files["/etc/kubernetes/kubelet.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.ClusterDNS, in.Node.ClusterDNS) || config.ClusterDomain != "tenant.example" {
		t.Errorf("DNS %v, domain %q", config.ClusterDNS, config.ClusterDomain)
	}
	if _, isWritten := files[nodeIPProgram]; isWritten || strings.Contains(files["/etc/systemd/system/kubelet.service.d/90-ingot.conf"], "NODE_IP") {
		t.Error("the node's address is looked for although no network is given")
	}
}

// TestTheNodesAddressIsThatOfItsNetwork runs the program in a network namespace with several interfaces.
func TestTheNodesAddressIsThatOfItsNetwork(t *testing.T) {
	require.Tool(t, "ip", "apt-get install -y iproute2")
	if os.Getuid() != 0 {
		require.Missing(t, "root", "run as root: network namespaces need it")
	}
	run := func(networks ...string) (string, error) {
		in := plain()
		in.Node.Networks = networks
		files := written(t, in)
		if drop := files["/etc/systemd/system/kubelet.service.d/90-ingot.conf"]; !strings.Contains(drop, "ExecStartPre=/bin/sh "+nodeIPProgram+"\n") || !strings.Contains(drop, " $INGOT_NODE_IP\n") {
			t.Errorf("the drop-in is\n%s", drop)
		}
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte(files[nodeIPProgram]), 0o600); err != nil {
			t.Fatal(err)
		}
		const prepare = `set -e; mount -t tmpfs tmpfs /run
ip link add storage type veth peer name b; ip link add fabric type veth peer name d
ip address add 10.10.0.5/24 dev storage; ip address add 10.20.3.7/22 dev fabric; ip address add 10.20.3.8/22 dev fabric; ip address add fd00:20::7/64 dev fabric nodad
for i in storage b fabric d; do ip link set dev $i up; done
if sh "$0"; then cat /run/ingot-node-ip.env; else test ! -e /run/ingot-node-ip.env; exit 1; fi`
		out, err := exec.CommandContext(t.Context(), "unshare", "-nm", "sh", "-c", prepare, program).CombinedOutput()
		return string(out), err
	}
	for want, networks := range map[string][]string{
		"INGOT_NODE_IP=--node-ip=10.20.3.7\n":            {"10.20.0.0/22"},
		"INGOT_NODE_IP=--node-ip=fd00:20::7,10.20.3.7\n": {"fd00:20::/64", "10.20.0.0/16"},
	} {
		if out, err := run(networks...); err != nil || out != want {
			t.Errorf("%v: %q, %v", networks, out, err)
		}
	}
	if out, err := run("10.20.0.0/22", "fd00:30::/64"); err == nil || !strings.Contains(out, "no interface has an address in fd00:30::/64") {
		t.Errorf("a network without an address: %q, %v", out, err)
	}
}
