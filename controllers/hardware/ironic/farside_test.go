package ironic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/conformance"
)

// State is the provision state of the node, and in a wait for the agent the step that the agent is at.
func (r *rig) State() string {
	switch n := r.node(); {
	case n == nil:
		return ""
	case n.State == "wait call-back" && n.DeployStep.Step == "write_image":
		return n.DeployStep.Step
	case n.State == "clean wait" && n.CleanStep.Step != "":
		return n.CleanStep.Step
	default:
		return n.State
	}
}

// SecondDisk is never erased: the agent leaves it out.
func (r *rig) SecondDisk() string { return r.second }

// Delete deletes the node, as an operator does who has it in maintenance, whatever its state.
func (r *rig) Delete() {
	r.Helper()
	for begun := time.Now(); r.node() != nil; time.Sleep(pollInterval) {
		if time.Since(begun) > patience {
			r.Fatal("Ironic does not delete the node")
		}
		r.send(http.MethodPut, "/maintenance", map[string]string{"reason": "it is deleted"})
		r.send(http.MethodDelete, "", nil)
	}
	r.hasLostNode, r.hasInventory = true, false
}

// RotateBMC changes the password of the BMC. Ironic's fake hardware has none to log in to: what counts is what Ironic would log in with.
func (r *rig) RotateBMC() { r.bmcPassword = "rotated-bmc-password" }
func (r *rig) TakeBMC()   { r.host.BMC.Password = r.bmcPassword }

// BMCPassword reads the password from Ironic's database: its API shows none.
func (r *rig) BMCPassword() (used string, isRight bool) {
	r.Helper()
	var info struct {
		Password string `json:"redfish_password"`
	}
	if err := json.Unmarshal([]byte(r.ironic.DriverInfo(r.nodeName())), &info); err != nil {
		r.Fatal(err)
	}
	return info.Password, info.Password == r.bmcPassword
}

// useInspector gives the node the inspect interface that waits for ironic-inspector.
func (r *rig) useInspector() {
	r.Helper()
	status := r.send(http.MethodPatch, "", []map[string]string{{"op": "add", "path": "/inspect_interface", "value": "inspector"}})
	r.hasInspector = status == http.StatusOK
}

// serveInspector serves ironic-inspector, whose inspections never end unless they are aborted, and returns its URL.
// https://docs.openstack.org/api-ref/baremetal-introspection
func serveInspector(t *testing.T) string {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-OpenStack-Ironic-Inspector-API-Minimum-Version", "1.0")
		w.Header().Set("X-OpenStack-Ironic-Inspector-API-Maximum-Version", "1.18")
		_, node, isInspection := strings.Cut(r.URL.Path, "/introspection/")
		switch {
		case !isInspection:
			_, _ = fmt.Fprintf(w, `{"versions": [{"id": "1.18", "status": "CURRENT", "links": [{"rel": "self", "href": "http://%s/v1"}]}]}`, r.Host)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
		default:
			_, _ = fmt.Fprintf(w, `{"uuid": %q, "finished": false, "error": null, "state": "waiting"}`, node)
		}
	}))
	t.Cleanup(service.Close)
	return service.URL
}

var _ conformance.Rig = (*rig)(nil)
