package ironic

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// refusal is a response as Ironic 21.4 sends it, with the fault as a string of JSON.
func refusal(status int, fault string) error {
	return gophercloud.ErrUnexpectedResponseCode{
		Actual: status, Body: []byte(`{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"` + fault + `\", \"debuginfo\": null}"}`),
	}
}

func TestEachRefusalHasTheKindThatSaysWhatTheCallerCanDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want hardware.Kind
	}{
		{refusal(http.StatusConflict, "Node 1 is locked by host conductor-1, please retry after the current operation is completed."), hardware.Busy},
		{refusal(http.StatusInternalServerError, "Unable to process request at this time. The concurrent action limit for deployment has been reached."), hardware.Busy},
		{refusal(http.StatusBadRequest, "No valid host was found. Reason: No conductor service registered which supports driver redfish"), hardware.Busy},
		{refusal(http.StatusNotFound, "No valid host was found. Reason: none"), hardware.Busy},
		{refusal(http.StatusServiceUnavailable, "Requested action cannot be performed due to lack of free conductor workers."), hardware.Busy},
		{refusal(http.StatusBadRequest, "The requested action provide can not be performed on node 1 while it is in state deploying."), hardware.Conflict},
		{refusal(http.StatusConflict, "A node with name hall~a already exists."), hardware.Conflict},
		{refusal(http.StatusInternalServerError, "json-rpc failed"), hardware.Unreachable},
		{refusal(http.StatusBadGateway, ""), hardware.Unreachable},
		{refusal(http.StatusUnauthorized, "Incorrect username or password"), hardware.Unauthorized},
		{refusal(http.StatusNotAcceptable, "Version 1.99 was requested but the requested API version is not supported"), hardware.Unsupported},
		{refusal(http.StatusBadRequest, "Expected a MAC address but received x."), hardware.Invalid},
		{errors.New("dial tcp 127.0.0.1:6385: connect: connection refused"), hardware.Unreachable},
	} {
		if got := asError(c.err, "request", "hall/a"); hardware.KindOf(got) != c.want {
			t.Errorf("%v: expected %s", got, c.want)
		}
	}
}

func TestARefusedFieldWithASecretIsNotRepeated(t *testing.T) {
	err := asSecretError(refusal(http.StatusBadRequest, "Schema error for configdrive: {'user_data': 'tenant-token'} is not of type 'string'"), "request active", "hall/a")
	if hardware.KindOf(err) != hardware.Invalid || strings.Contains(err.Error(), "tenant-token") || !strings.Contains(err.Error(), "log of Ironic's API") {
		t.Errorf("the error is %v", err)
	}
}
