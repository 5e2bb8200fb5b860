package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// OlderThan compares driver versions such as 550.90.07 number by number. It says false for ok when one of them is not
// made of dotted numbers, apart from a trailing part after a hyphen or a plus sign that a distribution adds.
func OlderThan(version, minimum string) (older, ok bool) {
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

// Semantic writes a version such as 550.163.01 as a semantic version, 550.163.1: three numbers without leading zeros. It
// says false for what OlderThan cannot read.
func Semantic(version string) (string, bool) {
	n, ok := numbers(version)
	if !ok || len(n) > 3 {
		return "", false
	}
	n = append(n, 0, 0)
	return fmt.Sprintf("%d.%d.%d", n[0], n[1], n[2]), true
}

// Same says whether two versions have the same numbers, whatever a distribution added behind them.
func Same(a, b string) bool {
	older, ok := OlderThan(a, b)
	newer, _ := OlderThan(b, a)
	return ok && !older && !newer
}

// Upstream is the version without what a distribution added behind it.
func Upstream(version string) string {
	core, _, _ := strings.Cut(version, "-")
	core, _, _ = strings.Cut(core, "+")
	return core
}

func numbers(version string) ([]int, bool) {
	var out []int
	for _, part := range strings.Split(Upstream(version), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
