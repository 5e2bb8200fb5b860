package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// demoLimit is far more than a demo takes on a busy machine, and stepLimit more than one of its steps does.
const demoLimit, stepLimit = 20 * time.Minute, "10m"

// demo is one run of `ingot-demo --plain`.
type demo struct {
	cmd *exec.Cmd
	out *output
	// dir is the only folder that the demo and its programs know for temporary files.
	dir string
}

func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	program, err := filepath.Abs("../../bin/ingot-demo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		require.Missing(t, "bin/ingot-demo", "make build")
	}
	if testing.Short() {
		t.Skip("starts two control planes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), demoLimit)
	d := &demo{dir: t.TempDir(), out: &output{arrived: make(chan struct{}, 1)}}
	d.cmd = exec.CommandContext(ctx, program, append([]string{"--plain", "--timeout", stepLimit}, args...)...)
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.dir)
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = d.cmd.Wait()
		d.nothingIsLeft(t)
		if t.Failed() {
			t.Logf("the demo said:\n%s", d.out)
		}
	})
	return d
}

// end waits for the demo and returns its exit status.
func (d *demo) end(t *testing.T) int {
	t.Helper()
	err := d.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return d.cmd.ProcessState.ExitCode()
}

// says fails the test unless the demo said all of it.
func (d *demo) says(t *testing.T, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(d.out.String()) {
			t.Errorf("the demo did not say %q", p)
		}
	}
}

// nothingIsLeft waits until no process knows the demo's folder any more.
func (d *demo) nothingIsLeft(t *testing.T) {
	t.Helper()
	var left []string
	for range 300 {
		if left = processesOf(d.dir); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("still running half a minute after the demo: %v", left)
}

// processesOf lists the processes that have dir in their arguments.
func processesOf(dir string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil && bytes.Contains(text, []byte(dir)) {
			out = append(out, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return out
}

func TestTheDemoKeepsItsPromises(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	if status := d.end(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	d.says(t,
		`ok +8 of 8 servers are registered`, `ok +7 of 7 healthy servers`, `ok +the tenant's pod waited behind the gate`, `untolerated taint`,
		`ok +then it ran, on admitted node`, `ok +the server with a missing GPU is kept out by check resource/nvidia.com/gpu`,
		`Fail resource/nvidia.com/gpu: expected 8, observed 7`, `ok +powered on again, judged anew, and admitted`,
		`ok +the new image reached 4 of 4 Machines of h100, the canary first, never more than [12] of them away`,
		`ok +the bad image stopped at its canary; the other 1 of 2 Machines run on`, `stopped: .*driverVersion`,
		`ok +undone: every Machine of h200-dra is back on its stable revision`,
		`ok +the released host is powered off, erased and available again`,
		`ok +one Machine per host`, `ok +no password or token`, `Provisioning +\d`, `Validating +\d`, `Draining +\d`,
		`API writes +\d+\.\d per Machine`, `Events +\d+\.\d per Machine`,
	)
	if files, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestTheDemoKeepsItsPromisesWithABaremetalOperator(t *testing.T) {
	t.Parallel()
	require.Alone(t)
	d := startDemo(t, "--provider", "metal3", "--servers", "6")
	if status := d.end(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	d.says(t,
		`ok +6 of 6 servers are registered`, `ok +5 of 5 healthy servers`, `ok +then it ran, on admitted node`,
		`ok +the server with a missing GPU is kept out by check resource/nvidia.com/gpu`,
		`ok +the new image reached \d of \d Machines of h100, the canary first`, `ok +the bad image stopped at its canary`,
		`ok +the released host is powered off, `, `ok +one Machine per host`, `ok +no password or token`,
	)
}

func TestTheStoryOfTenantsKeepsItsPromises(t *testing.T) {
	require.Turn(t, 5)
	t.Parallel()
	d := startDemo(t, "--story", "tenants")
	if status := d.end(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	d.says(t,
		`ok +2 of 2 servers went from powered off to admitted node`, `ok +both Entitlements are enforced`,
		`ok +legal-ai runs with a device of legal-ai-a100, on admitted node whole-\w+ of NodeType a100\s`,
		`ok +research-ai runs with a device of research-ai-mig-1g, on admitted node slices-\w+ of NodeType a100-mig\s`,
		`ok +a claim of legal-ai's class is refused`, `ok +a claim with that class as a second choice is refused`, `ok +a pod that asks for nvidia.com/gpu is refused`,
		`ok +a pod that tolerates the gate .* is refused`, `ok +a claim over the quota is refused`, `exceeded quota: ingot-research-ai`,
		`ok +the third waits, and the Entitlement says why`, `ok +the metric shows it: ingot_waiting{kind="Pod",reason="QuotaExceeded",tenant="shared/research-ai"} 1`,
		`WAITS +PROBLEM`, `research-ai +mig-1g .*1 Pod QuotaExceeded`, `taken away, 2 held`, `ok +no new claim of it gets in`, `ok +what runs keeps its devices`, `ok +one Machine per host`, `ok +no password or token`,
	)
}

func TestTheStoryOfAnOutageTouchesNoServerBehindTheSwitch(t *testing.T) {
	require.Turn(t, 5)
	t.Parallel()
	d := startDemo(t, "--story", "outage")
	if status := d.end(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	d.says(t,
		`ok +5 of 5 servers went from powered off to admitted node`, `ok +4 of 4 Machines behind the switch are past their deadline`, `4 of the 4 servers of rack r2 do not serve since about the same time`,
		`kubectl annotate --overwrite rollouts.ingot.dev \S+ ingot.dev/confirm=\S+Z\.4\.[0-9a-f]{8}`, `ok +no Machine behind the switch is drained, and every server runs on`,
		`ok +the Machines served again by themselves, and the Rollout went on within its budget to its end`, `ok +one Machine per host`, `ok +no password or token`,
	)
}

func TestTheDemoKeepsItsPromisesOnARealIronic(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	if missing := ironic.Missing(); missing != "" {
		require.Missing(t, missing, ironic.Install)
	}
	d := startDemo(t, "--provider", "ironic", "--servers", "6")
	if status := d.end(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	d.says(t,
		`ok +6 of 6 servers are registered by Ironic`, `ok +5 of 5 healthy servers`, `ok +then it ran, on admitted node`,
		`simulated: Ironic's agent writes the image to the disk of server-01`, `simulated: the power of server-01 goes on`,
		`simulated: Ironic's agent does erase_devices_metadata on the disks of server-01`,
		`ok +the new image reached 2 of 2 Machines of h100`, `ok +the bad image stopped at its canary`,
		`ok +undone: every Machine of h200-dra is back`, `ok +the released host is powered off, erased and available again`,
		`ok +one Machine per host`, `ok +no password or token`,
	)
}

func TestWithoutTheVendorsTolerationTheDemoFailsAndNamesTheDaemonSet(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	samples := t.TempDir()
	if err := os.CopyFS(samples, os.DirFS("../../config/samples")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(samples, "tenant", "nvidia-device-plugin.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	toleration := "      - effect: NoSchedule\n        key: ingot.dev/unvalidated\n        operator: Exists\n"
	if !bytes.Contains(text, []byte(toleration)) {
		t.Fatal("the sample's toleration looks different: change this test with it")
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(toleration), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDemo(t, "--servers", "6", "--samples", samples)
	if status := d.end(t); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	d.says(t, `FAIL +2 of 5 healthy servers`, `Fail resource/nvidia.com/gpu: expected 8, observed 0`, `Fail resource/nvidia.com/mig-1g.10gb: expected 28, observed 0`, `kube-system/nvidia-device-plugin-daemonset`)
}

func TestWithAHiddenGPUTheDemoFailsAndNamesTheCheck(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--servers", "7", "--hide-gpus", "1")
	if status := d.end(t); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	// The node's own report may come before the device plugin's.
	d.says(t, `FAIL +5 of 6 healthy servers`, `Fail (resource/nvidia.com/gpu: expected 8, observed 7|report/gpu-mode: expected 8 Disabled, observed 7 Disabled)`, `server-02|training-`)
}

func TestABrokenMIGServerMakesTheDemoFailAndNamesTheCheck(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	for broken, checks := range map[string][]string{
		"mig-unit":    {`(Wait|Fail) resource/nvidia.com/mig-1g.10gb: expected 28, observed 0`, `Fail foreign/nvidia.com/gpu: expected (absent|0|nothing).*observed 8`},
		"mig-profile": {`(Wait|Fail) resource/nvidia.com/mig-3g.40gb: expected 8, observed 0`, `Fail foreign/nvidia.com/mig-2g.20gb`},
	} {
		t.Run(broken, func(t *testing.T) {
			t.Parallel()
			d := startDemo(t, "--servers", "6", "--break", broken)
			if status := d.end(t); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			d.says(t, append(checks, `FAIL +4 of 5 healthy servers`)...)
		})
	}
}

func TestAnInterruptedDemoStopsEverything(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{{"Ctrl-C", syscall.SIGINT}, {"the plug is pulled", syscall.SIGKILL}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := startDemo(t, "--servers", "6")
			if !d.out.await("== power on", demoLimit) {
				t.Fatal("the demo did not come as far as to power servers on")
			}
			if len(processesOf(d.dir)) < 4 {
				t.Errorf("expected three control planes and a manager, saw %v", processesOf(d.dir))
			}
			if err := d.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if status := d.end(t); status == 0 {
				t.Error("exit status 0 although the story was not told to its end")
			}
			d.nothingIsLeft(t)
		})
	}
}

func TestTheDemoRefusesFlagsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--servers", "2"}, `--servers 2: expected 6 to 64`},
		{[]string{"--servers", "0"}, `--servers 0: expected 6 to 64`},
		{[]string{"--story", "tenants", "--servers", "1"}, `--servers 1: expected 2 to 64`},
		{[]string{"--story", "tenants", "--hide-gpus", "1"}, `--hide-gpus and --break: they go with the story pipeline`},
		{[]string{"--story", "fairy"}, `--story fairy: expected outage, pipeline, tenants`},
		{[]string{"--speed", "0"}, `--speed 0: expected 1 to 1000`},
		{[]string{"--hide-gpus", "9"}, `--hide-gpus 9: expected 0 to 2`},
		{[]string{"--break", "all"}, `--break all: expected one of mig-profile, mig-unit`},
		{[]string{"--samples", "/nowhere"}, `--samples /nowhere: expected a folder`},
		{[]string{"--sever", "4"}, `unknown flag: --sever`},
		{[]string{"fast"}, `fast`},
	} {
		d := startDemo(t, c.args...)
		if status := d.end(t); status == 0 {
			t.Errorf("%v: exit status 0", c.args)
		}
		d.says(t, c.want)
		if n := strings.Count(strings.TrimSpace(d.out.String()), "\n"); n > 1 {
			t.Errorf("%v: an answer of %d lines: %s", c.args, n+1, d.out)
		}
	}
}
