package cloudinit

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/require"
)

// readBack runs cloud-init's own code over all golden files in one process: its MIME reader and its schema over the user
// data, its converter and its renderers for netplan and networkd over the network data, and the latter over the
// network-config beside it, which must say the same, and its reader of config drives over each node's documents together. It
// prints a line for every file that is wrong.
const readBack = `
import email, glob, io, json, os, shutil, sys, tempfile
from cloudinit import helpers, safeyaml, user_data
from cloudinit.config.schema import validate_cloudconfig_schema, SchemaValidationError
from cloudinit.sources.helpers import openstack
from cloudinit.net import network_state, netplan, networkd

def schema(name, text):
    try:
        validate_cloudconfig_schema(safeyaml.load(text), strict=True)
    except SchemaValidationError as e:
        print(os.path.basename(name), e)

def units(config):
    state = network_state.parse_net_config_data(config)
    out = networkd.Renderer({})._render_content(state)
    # Where a bond's MAC stands, to which NICs resolvers are given, and how a default route is spelled differs, and means the same.
    left_out = ("DNS=", "MACAddress=", "Destination=::/0")
    return {k: sorted(l for l in v.splitlines() if l and not l.startswith(left_out)) for k, v in out.items()}

for name in sorted(glob.glob(os.path.join(sys.argv[1], "*.user-data.yaml"))):
    schema(name, open(name).read())
for name in sorted(glob.glob(os.path.join(sys.argv[1], "*.user-data.mime"))):
    with tempfile.TemporaryDirectory() as root:
        message = user_data.UserDataProcessor(helpers.Paths({"cloud_dir": root, "run_dir": root})).process(open(name, "rb").read())
    for part in message.walk():
        text = part.get_payload(decode=True)
        if part.get_content_type() == "text/cloud-config":
            schema(name, text)
        if part.get_content_maintype() != "multipart":
            print("PART", os.path.basename(name), part.get_content_type(), part.get_filename(), len(text))
for name in sorted(glob.glob(os.path.join(sys.argv[1], "*.network_data.json"))):
    data = json.load(open(name))
    macs = {l["ethernet_mac_address"]: l["id"] for l in data["links"] if l["type"] == "phy"}
    config = openstack.convert_net_json(data, known_macs=macs)
    other = safeyaml.load(open(name.replace(".network_data.json", ".network-config.yaml")).read())
    if units(config) != units(other):
        print(os.path.basename(name), "and its network-config differ:", units(config), units(other))
    state = network_state.parse_net_config_data(config)
    with tempfile.TemporaryDirectory() as root:
        renderer = netplan.Renderer({"netplan_path": "out.yaml", "netplan_header": None, "postcmds": False})
        renderer.render_network_state(state, target=root)
        network = safeyaml.load(open(os.path.join(root, "out.yaml")).read())["network"]
    for kind in ("ethernets", "bonds", "vlans"):
        for link, out in sorted(network.get(kind, {}).items()):
            # What other versions add, such as an empty list of search domains, says nothing.
            kept = {k: v for k, v in out.items() if k in ("addresses", "dhcp4", "dhcp6", "match", "routes", "set-name", "interfaces", "parameters", "id", "link")}
            kept["dns"] = out.get("nameservers", {}).get("addresses", [])
            print("NETWORK", os.path.basename(name) + "/" + link, json.dumps(kept, sort_keys=True))
for name in sorted(glob.glob(os.path.join(sys.argv[1], "*.meta_data.json"))):
    stem = name[:-len(".meta_data.json")]
    with tempfile.TemporaryDirectory() as root:
        latest = os.path.join(root, "openstack", "latest")
        os.makedirs(latest)
        shutil.copy(name, os.path.join(latest, "meta_data.json"))
        shutil.copy(glob.glob(stem + ".user-data.*")[0], os.path.join(latest, "user_data"))
        if os.path.exists(stem + ".network_data.json"):
            shutil.copy(stem + ".network_data.json", os.path.join(latest, "network_data.json"))
        drive = openstack.ConfigDriveReader(root).read_v2()
    if drive["metadata"]["instance-id"] != json.load(open(name))["uuid"] or not drive["userdata"]:
        print(os.path.basename(name), "is read as", drive["metadata"])
    print("DRIVE", os.path.basename(stem), drive["metadata"]["local-hostname"], *sorted(drive.get("networkdata", {})))
`

func TestCloudInitReadsTheGoldenFiles(t *testing.T) {
	require.Tool(t, "cloud-init", "apt-get install -y cloud-init")
	out, err := exec.Command("/usr/bin/python3", "-c", readBack, "testdata").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]string{
		"described.network_data.json/eno1":      `{"dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "set-name": "eno1"}`,
		"described.network_data.json/eno2":      `{"dns": [], "match": {"macaddress": "52:54:00:aa:bb:02"}, "set-name": "eno2"}`,
		"described.network_data.json/bond0":     `{"addresses": ["10.20.5.17/22"], "dns": ["10.20.0.1"], "interfaces": ["eno1", "eno2"], "parameters": {"mii-monitor-interval": 100, "mode": "802.3ad"}, "routes": [{"to": "0.0.0.0/0", "via": "10.20.4.1"}]}`,
		"described.network_data.json/bond0.120": `{"addresses": ["10.30.0.17/24"], "dns": ["10.20.0.1"], "id": 120, "link": "bond0"}`,
		"full.network_data.json/boot0":          `{"addresses": ["10.20.5.17/22"], "dns": ["10.20.0.1", "fd00::1"], "match": {"macaddress": "52:54:00:aa:bb:01"}, "routes": [{"to": "0.0.0.0/0", "via": "10.20.4.1"}], "set-name": "boot0"}`,
		"plain.network_data.json/boot0":         `{"dhcp4": true, "dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "set-name": "boot0"}`,
		"ipv6-dhcp.network_data.json/boot0":     `{"dhcp6": true, "dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "set-name": "boot0"}`,
		"ipv6.network_data.json/boot0":          `{"addresses": ["fd00:20::17/64"], "dns": [], "match": {"macaddress": "52:54:00:aa:bb:01"}, "routes": [{"to": "::/0", "via": "fd00:20::1"}], "set-name": "boot0"}`,
	}
	for _, same := range []string{"joined", "flatcar", "openshift", "script"} {
		want[same+".network_data.json/boot0"] = want["full.network_data.json/boot0"]
	}
	for _, link := range []string{"eno1", "eno2", "bond0", "bond0.120"} {
		want["fcos.network_data.json/"+link] = want["described.network_data.json/"+link]
	}
	var parts []string
	drives := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if strings.HasPrefix(line, "PART ") {
			parts = append(parts, line)
			continue
		}
		if node, ok := strings.CutPrefix(line, "DRIVE "); ok {
			drives++
			name, said, _ := strings.Cut(node, " ")
			if said != "training-7xk2p links networks services" && (name != "unknown-nic" || said != "training-7xk2p") {
				t.Errorf("a config drive of %s is read as %s", name, said)
			}
			continue
		}
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
	if len(parts) != 2 || !strings.HasPrefix(parts[0], "PART described.user-data.mime text/cloud-config cloud-config.yaml ") ||
		!strings.HasPrefix(parts[1], "PART described.user-data.mime text/x-shellscript layer-00 ") {
		t.Errorf("cloud-init finds the parts %q", parts)
	}
	if files, err := filepath.Glob("testdata/*.meta_data.json"); err != nil || len(files) != drives || drives == 0 {
		t.Errorf("%d config drives were read of %d: %v", drives, len(files), err)
	}
	if files, err := filepath.Glob("testdata/*.user-data.yaml"); err != nil || len(files) == 0 {
		t.Errorf("no user data was read: %v", err)
	}
}
