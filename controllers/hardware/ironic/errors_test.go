package ironic

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// refusal is a response as Ironic 21.4 sends it, with the fault as a string of JSON.
func refusal(status int, fault string) error {
	inner, _ := json.Marshal(map[string]any{"faultcode": "Client", "faultstring": fault, "debuginfo": nil})
	outer, _ := json.Marshal(map[string]string{"error_message": string(inner)})
	return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: outer}
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
		{refusal(http.StatusForbidden, "Access was denied to the following resource: baremetal:node:set_provision_state"), hardware.Unauthorized},
		{refusal(http.StatusForbidden, "Not authorized."), hardware.Unauthorized},
		{refusal(http.StatusForbidden, "Operation not permitted."), hardware.Unauthorized},
		{gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusForbidden, Body: []byte("<html>refused by a proxy</html>")}, hardware.Unauthorized},
		{refusal(http.StatusForbidden, "Node 1 is protected and cannot be undeployed, rebuilt or deleted"), hardware.Conflict},
		{refusal(http.StatusForbidden, "An exclusive lock is required, but the current context has a shared lock."), hardware.Conflict},
		{refusal(http.StatusNotAcceptable, "Version 1.99 was requested but the requested API version is not supported"), hardware.Unsupported},
		{refusal(http.StatusBadRequest, "Expected a MAC address but received x."), hardware.Invalid},
		{errors.New("dial tcp 127.0.0.1:6385: connect: connection refused"), hardware.Unreachable},
	} {
		if got := asError(c.err, "request", "hall/a"); hardware.KindOf(got) != c.want {
			t.Errorf("%v: expected %s", got, c.want)
		}
	}
}

func TestARefusalOfALoginSaysWhoHasToDoWhat(t *testing.T) {
	policy := refusal(http.StatusForbidden, "Access was denied to the following resource: baremetal:node:create")
	for _, c := range []struct {
		op   string
		err  error
		want string
	}{
		{"list nodes", refusal(http.StatusUnauthorized, "Incorrect username or password"), "correct the Secret"},
		{opKeystone, refusal(http.StatusUnauthorized, "The request you have made requires authentication."), "make a new one"},
		{"create node", policy, "an administrator of Ironic"},
		{"create node", gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusForbidden, Body: []byte("<html>no</html>")}, "a proxy before Ironic"},
	} {
		if got := asError(c.err, c.op, "hall/a").Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: seen %q, expected %q in it", c.op, got, c.want)
		}
	}
	if got := asSecretError(policy, "create node", "hall/a", "denied").Error(); !strings.Contains(got, "an administrator of Ironic") || strings.Contains(got, "denied to") {
		t.Errorf("with a secret in the refusal: %s", got)
	}
	if got := asError(refusal(http.StatusConflict, "A node with name hall~a already exists."), "create node", "hall/a").Error(); strings.Contains(got, "Secret") {
		t.Errorf("a refusal of the request: %s", got)
	}
}

func TestAPortThatALoginDoesNotSeeIsToldFromANodeThatIsLocked(t *testing.T) {
	host := hardware.Host{Name: "a", Namespace: "hall", BootMAC: "52:54:00:00:00:01"}
	ours := node{uuid: "1", record: record{isCreated: true}}
	taken := asError(refusal(http.StatusConflict, "A port with MAC address 52:54:00:00:00:01 already exists."), "create port", "hall/a")
	if got := asHiddenPort(taken, host, ours).Error(); !strings.Contains(got, "--owner") || !strings.Contains(got, "node delete 1") {
		t.Errorf("seen %s", got)
	}
	locked := asError(refusal(http.StatusConflict, "Node 1 is locked by host c, please retry after the current operation is completed."), "create port", "hall/a")
	if got := asHiddenPort(locked, host, ours); got.Error() != locked.Error() {
		t.Errorf("seen %s", got)
	}
	if got := asHiddenPort(taken, host, node{uuid: "1"}); got.Error() != taken.Error() {
		t.Errorf("the site's own node: seen %s", got)
	}
}

func TestARefusalOfAProtectedNodeSaysHowThatIsLifted(t *testing.T) {
	err := named(asError(refusal(http.StatusForbidden, "Node 1 is protected and cannot be undeployed, rebuilt or deleted"), "request deleted", "hall/a"))
	if hardware.ReasonOf(err) != hardware.ReasonInstallerConflict || !strings.Contains(err.Error(), "baremetal node unset --protected") {
		t.Errorf("seen %v", err)
	}
}

func TestARefusalThatRepeatsASecretIsNotShown(t *testing.T) {
	const userData = "#cloud-config\nwrite_files: ['tenant-token']\n"
	for name, c := range map[string]struct {
		fault   string
		secrets []string
		isShown bool
	}{
		"a document, quoted by Python":           {`Schema error for configdrive: {'user_data': '#cloud-config\\nwrite_files'} is not of type 'string'`, []string{userData}, false},
		"a password":                             {"driver_info: 'bmc-password' is not of type 'object'", []string{"bmc-password"}, false},
		"a short password":                       {"driver_info: 'calvin' is not of type 'object'", []string{"calvin"}, false},
		"nothing of a password can be told":      {"driver_info is not of type 'object'", []string{"a'b\"c"}, false},
		"what is missing for the deployment":     {"Cannot validate image information: Missing deploy_kernel and deploy_ramdisk.", []string{userData, ""}, true},
		"a request that has no secret":           {"Schema error for interface: 'x' is not one of ['deploy']", nil, true},
		"a lock, whatever the request has in it": {"Node 1 is locked by host conductor-1, please retry.", []string{userData}, true},
	} {
		err := asSecretError(refusal(http.StatusBadRequest, c.fault), "request active", "hall/a", c.secrets...)
		if isShown := strings.Contains(err.Error(), c.fault[:12]); isShown != c.isShown {
			t.Errorf("%s: the error is %v", name, err)
		}
		if !c.isShown && !strings.Contains(err.Error(), "log of Ironic's API") {
			t.Errorf("%s: the error does not say where to look: %v", name, err)
		}
	}
}
