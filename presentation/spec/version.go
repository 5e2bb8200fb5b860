package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// IsOlderVersion reports whether version is older than minimum. Driver versions such as 550.90.07 are compared number by number.
// ok is false when one of the two does not consist of dotted numbers; what a distribution adds behind a
// hyphen or a plus sign is ignored.
func IsOlderVersion(version, minimum string) (older, ok bool) {
	v, okV := numbers(version)
	m, okM := numbers(minimum)
	if !okV || !okM {
		return false, false
	}
	for i := range max(len(v), len(m)) {
		var a, b int
		if i < len(v) {
			a = v[i]
		}
		if i < len(m) {
			b = m[i]
		}
		if a != b {
			return a < b, true
		}
	}
	return false, true
}

// SemanticVersion returns a version such as 550.163.01 as a semantic version, 550.163.1: three numbers without leading zeros.
// ok is false for what IsOlderVersion cannot read.
func SemanticVersion(version string) (semantic string, ok bool) {
	n, ok := numbers(version)
	if !ok || len(n) > 3 {
		return "", false
	}
	n = append(n, 0, 0)
	return fmt.Sprintf("%d.%d.%d", n[0], n[1], n[2]), true
}

// IsSameVersion reports whether two versions have the same numbers, whatever a distribution added behind them.
func IsSameVersion(a, b string) bool {
	older, ok := IsOlderVersion(a, b)
	newer, _ := IsOlderVersion(b, a)
	return ok && !older && !newer
}

// UpstreamVersion returns the version without what a distribution added behind it.
func UpstreamVersion(version string) string {
	core, _, _ := strings.Cut(version, "-")
	core, _, _ = strings.Cut(core, "+")
	return core
}

func numbers(version string) ([]int, bool) {
	var out []int
	for _, part := range strings.Split(UpstreamVersion(version), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
