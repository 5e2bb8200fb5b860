package lifecycle

import (
	"strings"
	"testing"
)

func TestAKubeletMustNotBeNewerThanTheAPIServerNorMoreThanThreeMinorVersionsOlder(t *testing.T) {
	for _, c := range []struct{ kubelet, server, want string }{
		{"1.37.0", "v1.37.2", ""}, {"1.34.9", "v1.37.0", ""},
		{"1.38.0", "v1.37.0", "newer than"}, {"1.33.0", "v1.37.0", "more than three"},
		{"2.0.0", "v1.37.0", "newer than"}, {"latest", "v1.37.0", "not a version"}, {"1.37.0", "", "not a version"},
	} {
		if got := VersionSkewProblem(c.kubelet, c.server); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("kubelet %s, server %s: %q", c.kubelet, c.server, got)
		}
	}
}
