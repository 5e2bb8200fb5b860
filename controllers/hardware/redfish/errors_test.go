package redfish

import (
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	for header, want := range map[string]string{
		"30":                            "in 30 s",
		"Wed, 21 Oct 2026 07:28:00 GMT": `at "Wed, 21 Oct 2026 07:28:00 GMT"`,
		"-1\nx":                         `at "-1\nx"`,
	} {
		if got := retryTime(header); got != want {
			t.Errorf("Retry-After %q: got %s, want %s", header, got, want)
		}
	}
}
func TestAPanicInTheParserIsAnInvalidAnswer(t *testing.T) {
	endpoint := hardware.Endpoint{Address: "https://10.0.0.7", Password: "hidden"}
	err := recoverPanic(func() error { panic("index out of range in hidden") })
	typed := classifyError("read power state", endpoint, err, nil, "")
	if hardware.KindOf(typed) != hardware.Invalid {
		t.Errorf("got %v, expected Invalid", typed)
	}
	if want := "read power state on https://10.0.0.7: Invalid: the BMC's answer makes no sense: index out of range in ***"; typed.Error() != want {
		t.Errorf("got %q, expected %q", typed, want)
	}
}
