package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/ingot-dev/ingot/cloudinit/kubelet/fragment"
)

// kept is how many minor releases the table has.
const kept = 6

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kubeletreleases TABLE.json")
		os.Exit(1)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "kubeletreleases:", err)
		os.Exit(1)
	}
}

// run brings the table up to the release of k8s.io/kubelet that go.mod has. A release that is in the table is not read again, because it never changes;
// the newest always is, so that a table that was edited by hand is found.
func run(file string) error {
	newest, err := newestMinor()
	if err != nil {
		return err
	}
	var table fragment.Table
	switch text, err := os.ReadFile(file); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &table); err != nil {
			return err
		}
	}
	for minor := newest - kept + 1; minor <= newest; minor++ {
		if minor != newest && slices.Contains(table.Minors, minor) {
			continue
		}
		release, err := readRelease(minor)
		if err != nil {
			return fmt.Errorf("release 1.%d: %w", minor, err)
		}
		add(&table, minor, release)
	}
	dropBefore(&table, newest-kept+1)
	text, err := json.MarshalIndent(table, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(compact.ReplaceAll(text, []byte("{$1, $2}")), '\n'), 0o644)
}

// compact puts the range of a member on one line.
var compact = regexp.MustCompile(`\{\s+("first": \d+),\s+("last": \d+)\s+\}`)

var requirement = regexp.MustCompile(`(?m)^\s*k8s\.io/kubelet v0\.(\d+)\.`)

// newestMinor returns the minor release of k8s.io/kubelet that this module requires.
func newestMinor() (int, error) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		return 0, err
	}
	found := requirement.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("go.mod does not require k8s.io/kubelet")
	}
	return strconv.Atoi(string(found[1]))
}

// release is what one minor release knows.
type release struct {
	members []string
	gates   []gate
}

func readRelease(minor int) (release, error) {
	types, err := download(fmt.Sprintf("k8s.io/kubelet@v0.%d.0", minor))
	if err != nil {
		return release{}, err
	}
	whole, err := download(fmt.Sprintf("k8s.io/kubernetes@v1.%d.0", minor))
	if err != nil {
		return release{}, err
	}
	members, err := readMembers(filepath.Join(types, "config", "v1beta1", "types.go"))
	if err != nil {
		return release{}, err
	}
	gates, err := readGates(whole, minor)
	return release{members: members, gates: gates}, err
}

// download returns the directory of a module in the module cache.
func download(module string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w: %s", module, err, out)
	}
	var answer struct{ Dir string }
	err = json.Unmarshal(out, &answer)
	return answer.Dir, err
}

// add puts a release into the table. What was known of it before is forgotten.
func add(t *fragment.Table, minor int, r release) {
	if t.Members == nil {
		t.Members, t.Gates = map[string]fragment.Range{}, map[string]fragment.Gate{}
	}
	for path, known := range t.Members {
		if known.Last == minor {
			known.Last--
			t.Members[path] = known
		}
	}
	for name, known := range t.Gates {
		if known.Last == minor {
			known.Last--
			t.Gates[name] = known
		}
	}
	for _, path := range r.members {
		t.Members[path] = extend(t.Members[path], minor)
	}
	for _, g := range r.gates {
		known := t.Gates[g.name]
		known.Range, known.Locked, known.Value = extend(known.Range, minor), g.locked, g.value
		t.Gates[g.name] = known
	}
	if !slices.Contains(t.Minors, minor) {
		t.Minors = append(t.Minors, minor)
		slices.Sort(t.Minors)
	}
}

func extend(known fragment.Range, minor int) fragment.Range {
	if known.First == 0 {
		known.First = minor
	}
	known.Last = max(known.Last, minor)
	return known
}

// dropBefore forgets the releases before the first that is kept, and what only they had.
func dropBefore(t *fragment.Table, first int) {
	t.Minors = slices.DeleteFunc(t.Minors, func(m int) bool { return m < first })
	for path, known := range t.Members {
		known.First = max(known.First, first)
		if t.Members[path] = known; known.Last < known.First {
			delete(t.Members, path)
		}
	}
	for name, known := range t.Gates {
		known.First = max(known.First, first)
		if t.Gates[name] = known; known.Last < known.First {
			delete(t.Gates, name)
		}
	}
}
