package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/requests"
)

// ctk answers as nvidia-ctk config does, in the versions 1.16.2 and 1.18.0: a member that has its default is printed as a comment, also after it was set, and
// a configuration that is no TOML is an error. It notes when it writes.
const ctk = `#!/bin/sh
set -eu
file=ROOT/etc/nvidia-container-runtime/config.toml
environment=accept-nvidia-visible-devices-envvar-when-unprivileged
volumes=accept-nvidia-visible-devices-as-volume-mounts
has() { grep -qs "^$1 = $2$" "$file"; }
if grep -qs '=$' "$file"; then echo "unable to create config: expecting a value" >&2; exit 1; fi
e=true; v=false; write=
if has $environment false; then e=false; fi
if has $volumes true; then v=true; fi
for word; do
	case "$word" in
	$environment=*) e=${word#*=} ;;
	$volumes=*) v=${word#*=} ;;
	--in-place) write=yes ;;
	config | --set) ;;
	*) echo "$word is not expected" >&2; exit 1 ;;
	esac
done
print() {
	if [ $v = false ]; then echo "#$volumes = false"; else echo "$volumes = true"; fi
	if [ $e = true ]; then echo "#$environment = true"; else echo "$environment = false"; fi
	echo 'disable-require = false'
}
if [ -z "$write" ]; then print; exit; fi
echo written >> ROOT/writes
if [ -e ROOT/read-only ]; then exit 1; fi
mkdir -p ROOT/etc/nvidia-container-runtime
print > "$file"
`

// dump is what containerd prints on a node that lacks nothing.
const dump = "enable_cdi = true\n  BinaryName = '/usr/bin/nvidia-container-runtime'\n"

// toolkitNode returns a node with the programs that are named, without a containerd unless it is among them.
func toolkitNode(t *testing.T, n Node, programs ...string) node {
	t.Helper()
	out := node{t, t.TempDir()}
	for _, dir := range []string{"run", "var/lib", "bin"} {
		if err := os.MkdirAll(filepath.Join(out.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range Files(n) {
		out.write(f.Path, f.Content)
	}
	out.write("/etc/containerd/config.toml", "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n")
	out.write("/bin/systemctl", "#!/bin/sh\n")
	for _, name := range programs {
		text := "#!/bin/sh\n"
		switch name {
		case "nvidia-ctk":
			text = strings.ReplaceAll(ctk, "ROOT", out.root)
		case "containerd":
			text += "cat <<'END'\n" + dump + "END\n"
		}
		out.write("/bin/"+name, text)
		out.write("/usr/bin/"+name, text)
	}
	return out
}

// TestTheToolkitOfASharedNodeGivesNothingForAVariable runs the program of the node's unit twice: the second time nothing is written.
func TestTheToolkitOfASharedNodeGivesNothingForAVariable(t *testing.T) {
	t.Parallel()
	const environment, volumes = "accept-nvidia-visible-devices-envvar-when-unprivileged", "accept-nvidia-visible-devices-as-volume-mounts"
	shared := Node{Version: "2.2.0", Runtime: true, CDI: true, Shared: true}
	all := []string{"containerd", "nvidia-ctk", "nvidia-container-runtime"}
	for sentence, tt := range map[string]struct {
		node     Node
		programs []string
		config   string
		readOnly bool
		want     string
		writes   int
	}{
		"no configuration":                   {shared, all, "", false, "ok", 1},
		"the defaults":                       {shared, all, "#" + environment + " = true\n", false, "ok", 1},
		"volumes give devices":               {shared, all, environment + " = false\n" + volumes + " = true\n", false, "ok", 1},
		"closed by the image":                {shared, all, environment + " = false\n", false, "ok", 0},
		"it cannot be written":               {shared, all, "", true, "nvidia-environment", 2},
		"closed, and it cannot be written":   {shared, all, environment + " = false\n", true, "ok", 0},
		"a configuration that is not read":   {shared, all, environment + " =\n", false, "nvidia-environment", 0},
		"the toolkit lacks its command":      {shared, []string{"containerd", "nvidia-container-runtime"}, "", false, "nvidia-environment", 0},
		"claims, and no toolkit in the node": {Node{Version: "2.2.0", CDI: true, Shared: true}, all[:1], "", false, "ok", 0},
		"claims, and a toolkit all the same": {Node{Version: "2.2.0", CDI: true, Shared: true}, all, "", false, "ok", 1},
		"an agent with its own containerd":   {shared, all[1:], "", false, "ok", 1},
		"such an agent, open":                {shared, all[1:], "", true, "nvidia-environment", 2},
		"one tenant's":                       {Node{Version: "2.2.0", Runtime: true, CDI: true}, all, "", false, "ok", 0},
	} {
		n := toolkitNode(t, tt.node, tt.programs...)
		if path, err := exec.LookPath("containerd"); err == nil && tt.programs[0] != "containerd" {
			t.Skipf("this machine has a containerd: %s", path)
		}
		if tt.config != "" {
			n.write("/etc/nvidia-container-runtime/config.toml", tt.config)
		}
		if tt.readOnly {
			n.write("/read-only", "")
		}
		got := n.check()
		again := n.check()
		// A file that cannot be written is tried at every boot.
		if writes := strings.Count(n.read("/writes"), "\n"); got != tt.want || again != got || writes != tt.writes {
			t.Errorf("%s: %s, then %s, after %d writes; want %s after %d", sentence, got, again, writes, tt.want, tt.writes)
		}
		isClosed := strings.Contains("\n"+n.read("/etc/nvidia-container-runtime/config.toml"), "\n"+environment+" = false\n")
		if file, err := os.Stat(filepath.Join(n.root, "etc/nvidia-container-runtime/config.toml")); err == nil && tt.config == "" && file.Mode() != 0o644 {
			t.Errorf("%s: the configuration has mode %v", sentence, file.Mode())
		}
		if want := tt.want == "ok" && tt.node.Shared && len(tt.programs) > 1; isClosed != want {
			t.Errorf("%s: the configuration is %q", sentence, n.read("/etc/nvidia-container-runtime/config.toml"))
		}
	}
}

// TestWhereAReportIsExpectedTheNodeMakesIt: without it a node would wait for ever, or the tenants on it could get each other's GPUs.
func TestWhereAReportIsExpectedTheNodeMakesIt(t *testing.T) {
	seen, all := 0, requests.All()
	alone := all["h100-shared-dra"]
	alone.Image.Software.ContainerToolkit = ""
	all["claims, and no toolkit"] = alone
	for name, r := range all {
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		n := NodeOf(r.Image.Software, r.GPU, nil)
		if want := plan.Expectation.ContainerdReport; n.Shared != want || want && len(Units(n)) == 0 {
			t.Errorf("%s: expected %v, %+v", name, want, n)
		}
		if plan.Expectation.ContainerdReport {
			seen++
		}
		// Devices go by CDI where the plugin names them so.
		if plan.Tenant.DeviceListStrategy != "" && n.Runtime && !n.CDI {
			t.Errorf("%s: containerd need not inject devices: %+v", name, n)
		}
	}
	if seen == 0 {
		t.Error("no request has a report")
	}
	older := requests.All()["h100-shared"]
	older.Image.Software.Containerd = "1.7.23"
	if n := NodeOf(older.Image.Software, older.GPU, nil); !n.Shared || !n.CDI || !strings.Contains(n.Warning(), "enable_cdi = true") {
		t.Errorf("containerd 1: %+v: %s", n, n.Warning())
	}
	older.GPU.Tenancy = v1alpha1.TenancyDedicated
	if n := NodeOf(older.Image.Software, older.GPU, nil); n.Shared || n.CDI {
		t.Errorf("containerd 1 of one tenant: %+v", n)
	}
}
