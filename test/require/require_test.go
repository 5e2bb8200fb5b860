package require

import (
	"fmt"
	"testing"
)

func TestWhatIsDemandedFailsAndAllDemandsEverything(t *testing.T) {
	for _, c := range []struct {
		value, what string
		want        bool
	}{
		{"", "cloud-init", false},
		{"all", "cloud-init", true},
		{"qemu,cloud-init", "cloud-init", true},
		{"qemu", "cloud-init", false},
	} {
		if got := demanded(c.value, c.what); got != c.want {
			t.Errorf("demanded(%q, %q) = %v, want %v", c.value, c.what, got, c.want)
		}
	}
}

func TestASliceOfTheDeepSuiteIsTheSameForTheSameText(t *testing.T) {
	if isInSlice("", "TestA") || !isInSlice("all", "TestA") {
		t.Error("without the variable a deep test runs, or with all it does not")
	}
	const tests, slices = 50, 100
	runs := map[string]int{}
	for i := range slices {
		for j := range tests {
			slice, test := fmt.Sprint("commit", i), fmt.Sprint("Test", j)
			if is := isInSlice(slice, test); is != isInSlice(slice, test) {
				t.Errorf("%s is in slice %s, and is not", test, slice)
			} else if is {
				runs[test]++
			}
		}
	}
	sum := 0
	for _, n := range runs {
		sum += n
	}
	if len(runs) != tests {
		t.Errorf("of %d tests only %d are in one of %d slices", tests, len(runs), slices)
	}
	if part := float64(sum) / (tests * slices); part < 0.5/deepSlices || part > 2.0/deepSlices {
		t.Errorf("a slice has %.3f of the tests, want about 1/%d", part, deepSlices)
	}
}

func TestEachTextHasOneTurnAndEveryTurnComes(t *testing.T) {
	came := map[uint32]bool{}
	for i := range 100 {
		n := 0
		for turn := range uint32(turns) {
			if hasTurn("", turn) || !hasTurn("all", turn) {
				t.Fatal("a turn comes without the variable, or not in the deep suite")
			}
			if hasTurn(fmt.Sprint("commit", i), turn) {
				came[turn] = true
				n++
			}
		}
		if n != 1 {
			t.Errorf("commit%d has %d turns", i, n)
		}
	}
	if len(came) != turns {
		t.Errorf("of %d turns came %v", turns, came)
	}
}
