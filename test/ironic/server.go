package ironic

import (
	"cmp"
	"context"
	_ "embed" // match.py and query.py
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/require"
)

// Server is the Ironic of a test.
type Server struct {
	*Process
	t testing.TB
}

// RootVariable is the variable of the environment with the root directory of the system whose Ironic the tests use; without it they use this system's.
const RootVariable = "INGOT_IRONIC_ROOT"

// Start starts an Ironic with an empty database and waits until its API answers. It ends with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	options.Root = cmp.Or(options.Root, os.Getenv(RootVariable))
	for _, program := range programs {
		if options.Root == "" {
			require.Tool(t, program, Install)
		}
	}
	process, err := Launch(t.Context(), t.TempDir(), options)
	s := &Server{Process: process, t: t}
	if process != nil {
		t.Cleanup(s.Kill)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Run starts the process, which Kill may have ended, and waits until the API answers.
func (s *Server) Run() {
	s.t.Helper()
	if err := s.Resume(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

// RunWith is Run with changed options.
func (s *Server) RunWith(change func(*Options)) {
	s.t.Helper()
	if err := s.Configure(change); err != nil {
		s.t.Fatal(err)
	}
	s.Run()
}

// Kill ends the process at once, as a crash does. The database stays.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	s.Stop()
	if s.t.Failed() {
		s.t.Logf("end of Ironic's log:\n%s", s.logTail())
	}
}

//go:embed match.py
var match string

// MatchDisks returns for each set of root device hints the names of the disks that fit, as Ironic's agent matches them. The disks are a list of objects in JSON as
// an inventory of Ironic has them.
func MatchDisks(t testing.TB, disks string, hints []map[string]any) [][]string {
	t.Helper()
	require.Tool(t, programs[0], Install)
	asked, err := json.Marshal(hints)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", match, string(asked), disks).Output()
	if err != nil {
		t.Fatalf("match the hints %s: %v", asked, err)
	}
	var names [][]string
	if err := json.Unmarshal(out, &names); err != nil {
		t.Fatal(err)
	}
	return names
}

//go:embed query.py
var query string

// Query changes Ironic's database by a statement of SQLite. It is for what only services write that are not there, or a second conductor.
func (s *Server) Query(statement string, values ...string) {
	s.t.Helper()
	s.run(statement, values...)
}

// DriverInfo returns the driver_info of the node with this name, in JSON, with the passwords that Ironic's API does not show; empty: there is no such node.
func (s *Server) DriverInfo(node string) string {
	s.t.Helper()
	return s.run("select driver_info from nodes where name = ?", node)
}

// run carries out a statement and returns the first column of its first row.
func (s *Server) run(statement string, values ...string) string {
	s.t.Helper()
	running := 0
	if s.process != nil {
		running = s.process.Process.Pid
	}
	call := append([]string{"-c", query, filepath.Join(s.dir, "ironic.sqlite"), strconv.Itoa(running), statement}, values...)
	out, err := exec.CommandContext(s.t.Context(), "/usr/bin/python3", call...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", statement, err, out)
	}
	return strings.TrimSpace(string(out))
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
