package ironic_test

import (
	"net/http"
	"testing"

	"github.com/ingot-dev/ingot/test/ironic"
)

func TestAnIronicThatIsKilledAnswersAfterItsRestart(t *testing.T) {
	server := ironic.Start(t, ironic.Options{})
	server.Kill()
	if response, err := http.Get(server.Endpoint); err == nil {
		_ = response.Body.Close()
		t.Fatal("it answers after its end")
	}
	server.Run()
	response, err := http.Get(server.Endpoint + "/v1/nodes")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the API answers %s", response.Status)
	}
}
