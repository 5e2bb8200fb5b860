package baremetaloperator_test

import (
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

func TestTheSecretsAreClaimed(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	bmc, h := s.secret("bmc"), s.host()
	if !slices.Equal(bmc.Finalizers, []string{baremetaloperator.SecretFinalizer}) || len(bmc.OwnerReferences) != 1 || bmc.OwnerReferences[0].UID != h.UID || bmc.OwnerReferences[0].Controller != nil {
		t.Errorf("the Secret of the BMC is %+v", bmc.ObjectMeta)
	}
	if version := h.Status.GoodCredentials.Version; version != bmc.ResourceVersion {
		t.Errorf("the good credentials are version %s of %s", version, bmc.ResourceVersion)
	}
	for _, name := range append([]string{"bmc"}, documents...) {
		if value := s.secret(name).Labels[baremetaloperator.SecretLabel]; value != baremetaloperator.SecretLabelValue {
			t.Errorf("the Secret %s has the label %s=%s", name, baremetaloperator.SecretLabel, value)
		}
	}
	if document := s.secret("userData"); len(document.Finalizers)+len(document.OwnerReferences) != 0 {
		t.Errorf("the Secret of the user data is %+v", document.ObjectMeta)
	}
	if d := s.server.Disk(); string(d.UserData) != `{"is":"userData"}` || string(d.NetworkData) != `{"is":"networkData"}` || string(d.MetaData) != `{"is":"metaData"}` {
		t.Errorf("the server has %s, %s, %s", d.UserData, d.NetworkData, d.MetaData)
	}
}

// TestASecretOfTheBMCThatIsDeletedStaysReadable until its host is gone.
func TestASecretOfTheBMCThatIsDeletedStaysReadable(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateAvailable)
	if err := server.Client.Delete(t.Context(), s.secret("bmc")); err != nil {
		t.Fatal(err)
	}
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	s.settle()
	if h := s.host(); !h.Status.PoweredOn || h.Status.ErrorType != "" {
		t.Errorf("the host has %s", s.describe())
	}
	s.delete()
	s.until("the host is gone", func() bool { return s.host().UID == "" })
	if s.secret("bmc").UID != "" {
		t.Error("the Secret is still there")
	}
}

func TestCredentialsThatAreIncompleteAreNotRetriedByTime(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateAvailable)
	secret := s.secret("bmc")
	delete(secret.Data, "password")
	if err := server.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := s.look(); err != nil || !s.due.IsZero() {
		t.Errorf("the operator looks again at %v: %v", s.due, err)
	}
	if h := s.host(); h.Status.ErrorType != metal3.RegistrationError || !strings.Contains(h.Status.ErrorMessage, "password") {
		t.Errorf("the host has %s", s.describe())
	}
}

// TestAMissingDocumentIsAwaited takes each Secret of the config drive away before the installation begins.
func TestAMissingDocumentIsAwaited(t *testing.T) {
	forEachRelease(t, func(t *testing.T, conditions bool) {
		for _, name := range documents {
			s := newSite(t, conditions)
			s.reach(metal3.StateAvailable)
			giveBack := s.take(name)
			s.install(imageURL)
			s.untilState(metal3.StateProvisioning)
			err := s.look()
			h := s.host()
			says := h.Status.ErrorType == metal3.ProvisioningError && strings.HasPrefix(h.Status.ErrorMessage, "could not retrieve "+name+" secret")
			if says != conditions || (err == nil) != conditions || h.Status.ErrorCount != 0 {
				t.Errorf("without the Secret %s the look ended with %v, and the host has %s", name, err, s.describe())
			}
			if conditions && s.due.Sub(s.now) != pollInterval {
				t.Errorf("without the Secret %s the operator looks again after %s", name, s.due.Sub(s.now))
			}
			for range 5 {
				s.step()
			}
			if state := s.state(); state != metal3.StateProvisioning {
				t.Errorf("without the Secret %s the host is %s", name, state)
			}
			giveBack()
			s.untilState(metal3.StateProvisioned)
			if h := s.host(); h.Status.ErrorType != "" || h.Status.ErrorMessage != "" {
				t.Errorf("with the Secret %s again the host has %s", name, s.describe())
			}
		}
	})
}

// TestTheDocumentsAreReadWhenAnInstallationBegins takes them away while it runs.
func TestTheDocumentsAreReadWhenAnInstallationBegins(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioning)
	for _, name := range documents {
		s.take(name)
	}
	s.server.Delay(baremetaloperator.Deploying, 0)
	s.untilState(metal3.StateProvisioned)
	if got := s.server.History(); len(got) != 1 {
		t.Errorf("the disk went through %v", got)
	}
}

// TestADocumentWithoutItsKey is empty network data, and an error that the status does not say for the others.
func TestADocumentWithoutItsKey(t *testing.T) {
	for _, name := range documents {
		s := newSite(t, true)
		s.reach(metal3.StateAvailable)
		secret := s.secret(name)
		secret.Data = map[string][]byte{"other": nil}
		if err := server.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		s.install(imageURL)
		s.untilState(metal3.StateProvisioning)
		err := s.look()
		if isRefused := err != nil; isRefused != (name != "networkData") || s.host().Status.ErrorType != "" {
			t.Errorf("%s without its key: %v, %s", name, err, s.describe())
		}
	}
}

func TestADocumentOfAnotherNamespaceIsRefused(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateAvailable)
	s.install(imageURL)
	s.edit(func(h *metal3.BareMetalHost) {
		h.Spec.UserData = &corev1.SecretReference{Namespace: "default", Name: "userdata"}
	})
	s.untilState(metal3.StateProvisioning)
	if err := s.look(); err == nil || !strings.Contains(err.Error(), "same namespace") {
		t.Errorf("the look ended with %v", err)
	}
}
