package ironic

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/ingot-dev/ingot/test/require"
)

// Install is the command that installs what this package starts. The package ironic-common has the programs and no service.
const Install = "apt-get install ironic-common genisoimage ipmitool"

// startTimeout is how long Ironic may take until its API answers. It takes 4 to 8 seconds on a free core.
const startTimeout = 2 * time.Minute

// Options configure a Server. The zero value is an Ironic without authentication.
type Options struct {
	// Username and Password are those of HTTP basic authentication; empty: the API asks for none.
	Username, Password string
	// MaxDeploys and MaxCleans are the limits above which Ironic rejects; 0: its own, 250 and 50.
	MaxDeploys, MaxCleans int
	// DeployDelay, PowerDelay and InspectDelay are the seconds that the interfaces of fake-hardware take.
	DeployDelay, PowerDelay, InspectDelay int
}

// Server is one running Ironic.
type Server struct {
	// Endpoint is the URL of the API.
	Endpoint string

	t       testing.TB
	dir     string
	program string
	process *exec.Cmd
	exited  chan struct{}
}

// settings are what the template of the configuration takes.
type settings struct {
	Options
	Dir, Auth         string
	Port, ConductPort int
}

// Start starts an Ironic with an empty database and waits until its API answers. It ends with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	dbsync := require.Tool(t, "ironic-dbsync", Install)
	program := require.Tool(t, "ironic", Install)
	require.Tool(t, "genisoimage", Install)
	s := &Server{t: t, dir: t.TempDir(), program: program}
	set := settings{Options: options, Dir: s.dir, Auth: "noauth", Port: freePort(t), ConductPort: freePort(t)}
	if options.Username != "" {
		set.Auth = "http_basic"
		s.writePasswords(options)
	}
	s.Endpoint = "http://127.0.0.1:" + strconv.Itoa(set.Port)
	s.writeConfig(set)
	if out, err := exec.CommandContext(t.Context(), dbsync, "--config-file", s.config(), "create_schema").CombinedOutput(); err != nil {
		t.Fatalf("create the schema of Ironic's database: %v\n%s", err, out)
	}
	t.Cleanup(s.Kill)
	s.Run()
	return s
}

func (s *Server) config() string { return filepath.Join(s.dir, "ironic.conf") }

// Run starts the process, which Kill may have ended, and waits until the API answers.
func (s *Server) Run() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "ironic.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s.process = exec.Command(s.program, "--config-file", s.config()) //nolint:noctx // Kill ends it, in the cleanup of the test
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.process.Start(); err != nil {
		s.t.Fatalf("start Ironic: %v", err)
	}
	s.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		_ = process.Wait()
		close(exited)
	}(s.process, s.exited)
	s.waitUntilReady()
}

// Kill ends the process at once, as a crash does. The database stays.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	<-s.exited
	s.process = nil
	if s.t.Failed() {
		s.t.Logf("end of Ironic's log:\n%s", s.logTail())
	}
}

// waitUntilReady waits until the API answers and a conductor has registered the hardware type: before that the creation of a node fails.
func (s *Server) waitUntilReady() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !s.answers(ctx) {
		select {
		case <-tick.C:
		case <-s.exited:
			s.t.Fatalf("Ironic has ended:\n%s", s.logTail())
		case <-ctx.Done():
			s.t.Fatalf("Ironic's API does not answer at %s:\n%s", s.Endpoint, s.logTail())
		}
	}
}

// answers asks for the API's version, which needs no authentication, and then looks into the log for the conductor.
func (s *Server) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK && bytes.Contains(s.log(), []byte("Successfully started conductor"))
}

func (s *Server) log() []byte {
	log, _ := os.ReadFile(filepath.Join(s.dir, "ironic.log"))
	return log
}

func (s *Server) logTail() []byte {
	log := s.log()
	return log[max(0, len(log)-6000):]
}

// Query changes Ironic's database by a statement of SQLite. It is for what only services write that are not there, or a second conductor.
func (s *Server) Query(statement string, arguments ...string) {
	s.t.Helper()
	const script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1], timeout=60); c.execute(sys.argv[2], sys.argv[3:]); c.commit()"
	call := append([]string{"-c", script, filepath.Join(s.dir, "ironic.sqlite"), statement}, arguments...)
	if out, err := exec.CommandContext(s.t.Context(), "/usr/bin/python3", call...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", statement, err, out)
	}
}

// StoreInventory stores what an inspection by Ironic's agent would have stored of the node with this name: the inventory and the data of its plugins, in JSON.
func (s *Server) StoreInventory(node, inventory, plugins string) {
	s.t.Helper()
	s.Query("insert into node_inventory (version, inventory_data, plugin_data, node_id) select '1.0', ?, ?, id from nodes where name = ?", inventory, plugins, node)
}

// Reserve locks the node with this name, as a conductor does that works on it; with an empty conductor it is unlocked.
func (s *Server) Reserve(node, conductor string) {
	s.t.Helper()
	s.Query("update nodes set reservation = nullif(?, '') where name = ?", conductor, node)
}

func (s *Server) writeConfig(set settings) {
	s.t.Helper()
	for _, dir := range []string{"state", "httpboot", "tftpboot", "master", "images"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := config.Execute(&text, set); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.config(), text.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// writePasswords writes the file of HTTP basic authentication. Ironic takes bcrypt alone.
func (s *Server) writePasswords(options Options) {
	s.t.Helper()
	const script = "import bcrypt,sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt(4)).decode())"
	hash, err := exec.CommandContext(s.t.Context(), "/usr/bin/python3", "-c", script, options.Password).Output()
	if err != nil {
		s.t.Fatalf("hash the password: %v", err)
	}
	line := fmt.Sprintf("%s:%s\n", options.Username, bytes.TrimSpace(hash))
	if err := os.WriteFile(filepath.Join(s.dir, "htpasswd"), []byte(line), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// config is Ironic's configuration. Power synchronization is frequent, because a test waits for it. The management interface of fake-hardware knows no boot
// from a disk, which ends a deployment by an agent: noop takes its place.
var config = template.Must(template.New("ironic.conf").Parse(`[DEFAULT]
auth_strategy={{.Auth}}
http_basic_auth_user_file={{.Dir}}/htpasswd
rpc_transport=json-rpc
host=ingot-test
my_ip=127.0.0.1
enabled_hardware_types=fake-hardware,redfish,ipmi
enabled_boot_interfaces=fake,redfish-virtual-media,ipxe,pxe
enabled_deploy_interfaces=fake,direct,ramdisk
enabled_network_interfaces=noop
enabled_power_interfaces=fake,redfish,ipmitool
enabled_management_interfaces=fake,redfish,ipmitool,noop
default_management_interface=noop
enabled_inspect_interfaces=fake,redfish,no-inspect
enabled_bios_interfaces=fake,redfish,no-bios
enabled_raid_interfaces=fake,redfish,no-raid
enabled_console_interfaces=fake,no-console
enabled_rescue_interfaces=fake,no-rescue
enabled_storage_interfaces=noop,fake
enabled_vendor_interfaces=fake,redfish,no-vendor,ipmitool
grub_config_path=EFI/BOOT/grub.cfg
state_path={{.Dir}}/state
[api]
host_ip=127.0.0.1
port={{.Port}}
[json_rpc]
auth_strategy=noauth
host_ip=127.0.0.1
port={{.ConductPort}}
[database]
connection=sqlite:///{{.Dir}}/ironic.sqlite
[dhcp]
dhcp_provider=none
[agent]
image_download_source=http
require_tls=false
post_deploy_get_power_state_retries=1
post_deploy_get_power_state_retry_interval=0
[deploy]
http_root={{.Dir}}/httpboot
http_url=http://127.0.0.1:9
default_boot_mode=uefi
[pxe]
tftp_root={{.Dir}}/tftpboot
tftp_master_path={{.Dir}}/master
images_path={{.Dir}}/images
instance_master_path={{.Dir}}/master
[redfish]
use_swift=false
[service_catalog]
auth_type=none
endpoint_override=http://127.0.0.1:{{.Port}}
[fake]
deploy_delay={{.DeployDelay}}
power_delay={{.PowerDelay}}
inspect_delay={{.InspectDelay}}
[conductor]
automated_clean=true
sync_power_state_interval=5
node_locked_retry_attempts=1
{{- if .MaxDeploys}}
max_concurrent_deploy={{.MaxDeploys}}{{end}}
{{- if .MaxCleans}}
max_concurrent_clean={{.MaxCleans}}{{end}}
`))
