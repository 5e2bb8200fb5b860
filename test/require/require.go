// Package require decides what a test does when a program that it needs is not on the machine: it skips and says how to
// install the program, or fails where the environment demands that nothing is left out.
package require

import (
	"hash/fnv"
	"os"
	"os/exec"
	"slices"
	"strconv"
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

// DeepVariable names the environment variable that adds tests of the deep suite: "all" adds every one, and any other text a slice of them, the same
// one for the same text.
const DeepVariable = "INGOT_DEEP"

// Deep skips a test of the deep suite, which make test-deep runs, where it is not in the slice of this run. It may be called in a subtest too.
func Deep(t testing.TB) {
	t.Helper()
	if !isInSlice(os.Getenv(DeepVariable), t.Name()) {
		t.Skip("make test-deep runs it")
	}
}

// Alone skips a test of the deep suite that is in no slice: it needs the machine for itself, or what CI does not build.
func Alone(t testing.TB) {
	t.Helper()
	if os.Getenv(DeepVariable) != "all" {
		t.Skip("make test-deep runs it")
	}
}

// deepSlices is the number of slices that the deep suite has, of which one run of CI adds one.
const deepSlices = 12

func isInSlice(value, test string) bool {
	if value == "" || value == "all" {
		return value == "all"
	}
	return hash(value+"/"+test)%deepSlices == 0
}

// OneOf skips a test that is one of many like it, of which a run takes one part of so many: another part for each text of DeepVariable, all of them in the deep
// suite.
func OneOf(t testing.TB, parts uint32) {
	t.Helper()
	if value := os.Getenv(DeepVariable); value != "all" && hash(value+"/"+t.Name())%parts != 0 {
		t.Skip("make test-deep runs it; one part of several is run each time")
	}
}

// turns is the number of turns that the longest tests share.
const turns = 6

// Turn skips one of the longest tests where another has its turn: each text of DeepVariable chooses one turn, so that a run of CI takes as long as the last.
// Tests of one turn run together. Without the variable none has its turn, and in the deep suite all have.
func Turn(t testing.TB, turn uint32) {
	t.Helper()
	if !hasTurn(os.Getenv(DeepVariable), turn) {
		t.Skip("make test-deep runs it; one of " + strconv.Itoa(turns) + " turns is taken by each run of CI")
	}
}

func hasTurn(value string, turn uint32) bool {
	return value == "all" || value != "" && hash(value)%turns == turn
}

// Sample returns how a test with many cases chooses among them: all of them in the deep suite, else a sample by a seed, which changes with the text of
// DeepVariable.
func Sample() (all bool, seed uint64) {
	switch value := os.Getenv(DeepVariable); value {
	case "all":
		return true, 1
	case "":
		return false, 1
	default:
		return false, uint64(hash(value))
	}
}

func hash(text string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // writes of a hash return no error
	return sum.Sum32()
}

func demanded(value, what string) bool {
	return value == "all" || slices.Contains(strings.Split(value, ","), what)
}
