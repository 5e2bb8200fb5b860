package conversion

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/cloudinit/kubelet/fragment"
)

// KubeletMember returns the member of KubeletConfiguration that a flag of kubelet is: --max-pods=64 is maxPods: 64.
func KubeletMember(flag, value string) (string, any) {
	first, rest, _ := strings.Cut(flag, "-")
	for word := range strings.SplitSeq(rest, "-") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	if number, err := strconv.ParseInt(value, 10, 64); err == nil {
		return first, number
	}
	if truth, err := strconv.ParseBool(value); err == nil {
		return first, truth
	}
	if !strings.Contains(value, "=") {
		return first, value
	}
	pairs := map[string]any{}
	for pair := range strings.SplitSeq(value, ",") {
		key, of, _ := strings.Cut(pair, "=")
		if truth, err := strconv.ParseBool(of); err == nil && first == "featureGates" {
			pairs[key] = truth
			continue
		}
		pairs[key] = of
	}
	return first, pairs
}

// RefusedMember returns why the newest known kubelet or Ingot refuses members; empty: neither does.
func RefusedMember(members map[string]any) string {
	text, err := json.Marshal(members)
	if err != nil {
		return err.Error()
	}
	for _, f := range fragment.Check(text, "") {
		return f.Message
	}
	return ""
}
