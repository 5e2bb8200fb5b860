package cloudinit

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/require"
)

// readBack runs cloud-init's own code over all golden files in one process: its schema over the user data, its converter
// and its netplan renderer over the network data. It prints a line for every file that is wrong.
const readBack = `
import glob, io, json, os, sys, tempfile
from cloudinit import safeyaml
from cloudinit.config.schema import validate_cloudconfig_schema, SchemaValidationError
from cloudinit.sources.helpers import openstack
from cloudinit.net import network_state, netplan
for name in sorted(glob.glob(os.path.join(sys.argv[1], "*.user-data.yaml"))):
    try:
        validate_cloudconfig_schema(safeyaml.load(open(name).read()), strict=True)
    except SchemaValidationError as e:
        print(os.path.basename(name), e)
for name in sorted(glob.glob(os.path.join(sys.argv[1], "*.network_data.json"))):
    data = json.load(open(name))
    config = openstack.convert_net_json(data, known_macs={data["links"][0]["ethernet_mac_address"]: "eno1"})
    state = network_state.parse_net_config_data(config)
    with tempfile.TemporaryDirectory() as root:
        renderer = netplan.Renderer({"netplan_path": "out.yaml", "netplan_header": None, "postcmds": False})
        renderer.render_network_state(state, target=root)
        out = safeyaml.load(open(os.path.join(root, "out.yaml")).read())["network"]["ethernets"]["eno1"]
    # What other versions add, such as an empty list of search domains, says nothing.
    kept = {k: v for k, v in out.items() if k in ("addresses", "dhcp4", "dhcp6", "match", "routes", "set-name")}
    kept["dns"] = out.get("nameservers", {}).get("addresses", [])
    print("NETWORK", os.path.basename(name), json.dumps(kept, sort_keys=True))
`

func TestCloudInitReadsTheGoldenFiles(t *testing.T) {
	require.Tool(t, "cloud-init", "apt-get install -y cloud-init")
	out, err := exec.Command("/usr/bin/python3", "-c", readBack, "testdata").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]string{
		"full.network_data.json":      `{"addresses": ["10.20.5.17/22"], "dns": ["10.20.0.1", "fd00::1"], "match": {"macaddress": "52:54:00:aa:bb:01"}, "routes": [{"to": "0.0.0.0/0", "via": "10.20.4.1"}], "set-name": "eno1"}`,
		"plain.network_data.json":     `{"dhcp4": true, "dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "set-name": "eno1"}`,
		"ipv6-dhcp.network_data.json": `{"dhcp6": true, "dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "set-name": "eno1"}`,
		"ipv6.network_data.json":      `{"addresses": ["fd00:20::17/64"], "dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "routes": [{"to": "::/0", "via": "fd00:20::1"}], "set-name": "eno1"}`,
	}
	want["joined.network_data.json"] = want["full.network_data.json"]
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		rest, ok := strings.CutPrefix(line, "NETWORK ")
		if !ok {
			t.Errorf("cloud-init says: %s", line)
			continue
		}
		name, got, _ := strings.Cut(rest, " ")
		if got != want[name] {
			t.Errorf("cloud-init makes of %s\n%s\nwant\n%s", name, got, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("cloud-init did not read %s", name)
	}
	if files, err := filepath.Glob("testdata/*.user-data.yaml"); err != nil || len(files) == 0 {
		t.Errorf("no user data was read: %v", err)
	}
}
