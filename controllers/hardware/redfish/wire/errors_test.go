package wire

import "testing"

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	for header, want := range map[string]string{
		"30":                            "in 30 s",
		"Wed, 21 Oct 2026 07:28:00 GMT": `at "Wed, 21 Oct 2026 07:28:00 GMT"`,
		"-1\nx":                         `at "-1\nx"`,
	} {
		if got := comeBack(header); got != want {
			t.Errorf("Retry-After %q: got %s, want %s", header, got, want)
		}
	}
}
