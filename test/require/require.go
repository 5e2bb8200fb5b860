// Package require decides what a test does when a program that it needs is not on the machine: it skips and says how to
// install the program, or fails where the environment demands that nothing is left out.
package require

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Variable names the environment variable that turns skips into failures: "all", or a comma-separated list of programs.
const Variable = "INGOT_REQUIRE"

// Tool returns the path of the program. When it is missing the test is skipped with the command that installs it, or
// fails when Variable demands the program.
func Tool(t testing.TB, program, install string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	Missing(t, program, install)
	return ""
}

// Missing ends the test as Tool does, for something that was looked for in another way.
func Missing(t testing.TB, what, install string) {
	t.Helper()
	if demanded(os.Getenv(Variable), what) {
		t.Fatalf("%s is missing, and %s demands it: %s", what, Variable, install)
	}
	t.Skipf("%s is missing: %s", what, install)
}

// SkipUnlessAll skips a test that only `make e2e-all` runs, and says why.
func SkipUnlessAll(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("INGOT_E2E") != "all" {
		t.Skipf("%s: make e2e-all runs it", why)
	}
}

func demanded(value, what string) bool {
	return value == "all" || slices.Contains(strings.Split(value, ","), what)
}
