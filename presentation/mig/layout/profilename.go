package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ProfileName is the name of a MIG profile: 1g.10gb, 1g.10gb+me, 1c.2g.20gb, 1g.24gb-me (go-nvlib's grammar).
type ProfileName struct {
	// Compute slices of the compute instance; equal to Slices when the name is that of a GPU instance.
	Compute int
	// Slices of compute that the GPU instance has.
	Slices int
	// GiB of memory, rounded.
	GiB int
	// Attributes behind a plus sign: me, me.all, gfx.
	Attributes []string
	// Excluded is the attribute behind a minus sign: me.
	Excluded string
}

// ParseProfileName reads the name of a profile. The error shows an example of a name.
func ParseProfileName(s string) (ProfileName, error) {
	n, ok := parseProfileName(s)
	if !ok {
		return ProfileName{}, fmt.Errorf("%q is not the name of a MIG profile such as 1g.10gb or 1g.10gb+me", s)
	}
	return n, nil
}

func parseProfileName(s string) (ProfileName, bool) {
	var n ProfileName
	core, attributes, plus := strings.Cut(s, "+")
	if plus {
		n.Attributes = strings.Split(attributes, ",")
		for i, a := range n.Attributes {
			if !slices.Contains([]string{"me", "me.all", "gfx"}, a) || slices.Contains(n.Attributes[:i], a) {
				return ProfileName{}, false
			}
		}
	} else if before, ok := strings.CutSuffix(core, "-me"); ok {
		core, n.Excluded = before, "me"
	}
	parts := strings.Split(core, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return ProfileName{}, false
	}
	memory, hasMemory := parseNumber(parts[len(parts)-1], "gb")
	sliceCount, hasSlices := parseNumber(parts[len(parts)-2], "g")
	compute, hasCompute := sliceCount, true
	if len(parts) == 3 {
		compute, hasCompute = parseNumber(parts[0], "c")
	}
	n.GiB, n.Slices, n.Compute = memory, sliceCount, compute
	return n, hasMemory && hasSlices && hasCompute && compute <= sliceCount
}

// parseNumber returns the number before the unit: positive, of at most three digits, without leading zeros.
func parseNumber(s, unit string) (n int, ok bool) {
	digits, ok := strings.CutSuffix(s, unit)
	if !ok || len(digits) == 0 || len(digits) > 3 || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// IsGPUInstance reports whether the name is that of a GPU instance. Compute instances, which are parts of one, are never
// advertised.
func (n ProfileName) IsGPUInstance() bool { return n.Compute == n.Slices }

// String returns the name as drivers write it.
func (n ProfileName) String() string {
	out := fmt.Sprintf("%dg.%dgb", n.Slices, n.GiB)
	if !n.IsGPUInstance() {
		out = fmt.Sprintf("%dc.", n.Compute) + out
	}
	if len(n.Attributes) > 0 {
		out += "+" + strings.Join(n.Attributes, ",")
	}
	if n.Excluded != "" {
		out += "-" + n.Excluded
	}
	return out
}
