package wire

import (
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAPanicInTheParserIsAnInvalidAnswer(t *testing.T) {
	endpoint := hardware.Endpoint{Address: "https://10.0.0.7", Password: "hidden"}
	err := Guard(func() error { panic("index out of range in hidden") })
	typed := Classify("read power state", endpoint, err, nil, "")
	if hardware.KindOf(typed) != hardware.Invalid {
		t.Errorf("got %v, expected Invalid", typed)
	}
	if want := "read power state on https://10.0.0.7: Invalid: the BMC's answer makes no sense: index out of range in ***"; typed.Error() != want {
		t.Errorf("got %q, expected %q", typed, want)
	}
}
