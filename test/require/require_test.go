package require

import "testing"

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
