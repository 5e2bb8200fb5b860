package ironic

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ingot-dev/ingot/test/require"
)

// BMC is a BMC that speaks IPMI alone: OpenIPMI's ipmi_sim. Its power and its boot device are two files.
type BMC struct {
	// Address is the BMC's address, as spec.bmc.address has it.
	Address string

	t   testing.TB
	dir string
}

// chassis is the program that ipmi_sim calls for power and boot device: "get NAME..." or "set NAME VALUE...", after the directory.
const chassis = `#!/bin/sh
dir=$1; verb=$2; shift 2
if [ "$verb" = get ]; then
  echo "$@" >> "$dir/reads"
  for name in "$@"; do echo "$name:$(cat "$dir/$name")"; done
else
  while [ $# -gt 1 ]; do echo "$2" > "$dir/$1"; echo "$1 $2" >> "$dir/changes"; shift 2; done
fi
`

// StartBMC starts a BMC with one administrator. It ends with the test.
func StartBMC(t testing.TB, username, password string) *BMC {
	t.Helper()
	require.Tool(t, "ipmi_sim", "apt-get install openipmi")
	require.Tool(t, "ipmitool", "apt-get install ipmitool")
	listener, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	port := listener.LocalAddr().(*net.UDPAddr).Port
	_ = listener.Close()
	b := &BMC{Address: "ipmi://127.0.0.1:" + strconv.Itoa(port), t: t, dir: t.TempDir()}
	config := fmt.Sprintf(`name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 %d
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "%s %s"
  user 2 true %q %q admin 10 none md2 md5 straight
`, port, filepath.Join(b.dir, "chassis"), b.dir, username, password)
	const commands = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n"
	for name, text := range map[string]string{"chassis": chassis, "config": config, "commands": commands, "power": "0\n", "boot": "default\n", "changes": "", "reads": ""} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.start()
	return b
}

func (b *BMC) start() {
	b.t.Helper()
	file := func(name string) string { return filepath.Join(b.dir, name) }
	process := exec.Command("ipmi_sim", "-c", file("config"), "-f", file("commands"), "-s", b.dir, "-n", "-p") //nolint:noctx // it ends with the test
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
}

// IsOn returns whether the power is on.
func (b *BMC) IsOn() bool { return b.read("power") == "1" }

// Press changes the power as a person does at the server's button. It is none of the Changes, which the BMC was told.
func (b *BMC) Press() {
	b.t.Helper()
	power := "1\n"
	if b.IsOn() {
		power = "0\n"
	}
	// The file is replaced as a whole: the BMC reads it at any time.
	file := filepath.Join(b.dir, "power")
	if err := errors.Join(os.WriteFile(file+".new", []byte(power), 0o600), os.Rename(file+".new", file)); err != nil {
		b.t.Fatal(err)
	}
}

// Changes returns every change of the power and of the boot device, such as "boot pxe" and "power 1", in their order.
func (b *BMC) Changes() []string { return strings.Split(b.read("changes"), "\n") }

// Reads returns how often the BMC was asked for the power.
func (b *BMC) Reads() int { return strings.Count(b.read("reads"), "power") }

func (b *BMC) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
