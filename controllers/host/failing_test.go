package host_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

// TestAnInstallationThatTheBMCRefusesIsReportedOnceWithItsAnswer shows errors that only calls within an attempt meet: the power can be read.
func TestAnInstallationThatTheBMCRefusesIsReportedOnceWithItsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		faults bmc.Faults
		reason string
		says   string
	}{
		"the boot override is not taken":  {bmc.Faults{KeepsBootTarget: true}, v1alpha1.ReasonBMCConflict, "boot override"},
		"the BMC is busy with each reset": {bmc.Faults{BusyResets: bmc.All}, v1alpha1.ReasonBMCBusy, "temporarily unavailable"},
		"the ETag never matches":          {bmc.Faults{StaleETags: true}, v1alpha1.ReasonBMCConflict, "412"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			s := r.rack.Servers()[0]
			r.available(s)
			s.SetFaults(rack.Faults{BMC: c.faults})
			r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
			_, record := r.await(s, "the refusal is reported", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
				return record.Status.Error != nil && h.Status.ErrorType == metal3.ProvisioningError && h.Status.ErrorMessage == record.Status.Error.Reason+": "+record.Status.Error.Message
			})
			if e := record.Status.Error; e.Reason != c.reason || !strings.Contains(e.Message, c.says) {
				t.Errorf("error %+v", e)
			}
			if calls := record.Status.FailingCalls; len(calls) != 1 || calls[0].Call != v1alpha1.CallInstall || calls[0].Reason != c.reason {
				t.Errorf("failing calls %+v", calls)
			}
			r.writes.reset()
			time.Sleep(quick().BMCGrace) // several tries
			_, log := r.writes.counted()
			for _, line := range log { // that the installer asks for the power again is a write too
				if strings.Contains(line, "error") || strings.Contains(line, "failingCalls") {
					t.Errorf("the same refusal is written again: %s", line)
				}
			}
			eventually(t, "an event says so", func() bool { return r.told(s.Name(), c.reason) })
			var events eventsv1.EventList
			if err := server.Client.List(t.Context(), &events, client.InNamespace(r.namespace)); err != nil {
				t.Fatal(err)
			}
			for _, e := range events.Items {
				if e.Reason == c.reason && e.Series != nil {
					t.Errorf("the event is repeated %d times", e.Series.Count)
				}
			}
			s.SetFaults(rack.Faults{})
			if _, record = r.await(s, "it is provisioned", inState(metal3.StateProvisioned)); record.Status.Error != nil || len(record.Status.FailingCalls) != 0 {
				t.Errorf("provisioned, with %+v and %+v", record.Status.Error, record.Status.FailingCalls)
			}
		})
	}
}

func TestABMCWhoseSessionsAreInUseSaysSoOnTheHost(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	s.BMC().SetFaults(bmc.Faults{NoBasic: true}) // otherwise the server is driven without a session
	username, password := s.Credentials()
	login, err := json.Marshal(map[string]string{"UserName": username, "Password": password})
	if err != nil {
		t.Fatal(err)
	}
	endpoint, authority := s.BMC().Endpoint(), x509.NewCertPool()
	authority.AppendCertsFromPEM(endpoint.CABundle)
	others := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}}}
	defer others.CloseIdleConnections()
	for status := http.StatusCreated; status == http.StatusCreated; {
		response, err := others.Post(endpoint.Address+"/redfish/v1/SessionService/Sessions", "application/json", bytes.NewReader(login))
		if err != nil {
			t.Fatal(err)
		}
		status = response.StatusCode
		_ = response.Body.Close()
	}
	r.credentials(s, username, password)
	r.register(s, nil)
	h, record := r.await(s, "the sessions are reported", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Error != nil && record.Status.Error.Reason == v1alpha1.ReasonBMCSessionsExhausted
	})
	if !strings.Contains(record.Status.Error.Message, "end some at the BMC") || strings.Contains(h.Status.ErrorMessage, password) {
		t.Errorf("%s, %+v", h.Status.ErrorMessage, record.Status.Error)
	}
	s.BMC().EndSessions()
	r.await(s, "it is available", inState(metal3.StateAvailable))
}
