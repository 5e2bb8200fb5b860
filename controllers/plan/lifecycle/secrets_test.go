package lifecycle

import (
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestTheSecretsOfAHostFollowFromWhatItSays has a host that says the attempt in either way.
func TestTheSecretsOfAHostFollowFromWhatItSays(t *testing.T) {
	installed := func(attempt int64) *v1alpha1.Installation { return &v1alpha1.Installation{Attempt: attempt} }
	for _, c := range []struct {
		host Host
		want []int64
	}{
		{Host{Record: &HostRecord{}, SecretAttempt: 3}, []int64{0}},
		{Host{}, []int64{1}},
		{Host{SecretAttempt: 1}, []int64{1}},
		{Host{SecretAttempt: 1, Installation: installed(1)}, []int64{1}},
		{Host{SecretAttempt: 4, Installation: installed(2)}, []int64{4, 3}},
		{Host{Installation: installed(3)}, []int64{3, 2}},
	} {
		if got := c.host.SecretAttempts(); !slices.Equal(got, c.want) {
			t.Errorf("%+v may have the Secrets of the attempts %v, expected %v", c.host, got, c.want)
		}
	}
}

// TestTheSecretOfAnAttemptIsNoLongerThereWhenTheNextOneBegins has a host whose image is removed for the next attempt.
func TestTheSecretOfAnAttemptIsNoLongerThereWhenTheNextOneBegins(t *testing.T) {
	f := served(t, v1alpha1.MachineDraining)
	f.Machine.Status.PowerOffRequestedAt, f.Node = &metav1.MicroTime{Time: f.Now}, Node{}
	f.Host.Online, f.Host.PoweredOn, f.Host.PowerOffRequested, f.Host.State, f.Host.ImageURL, f.Host.InstalledURL = false, false, true, metal3.StateAvailable, "", ""
	f.Secret = Secret{Found: true, Attempt: f.Machine.Status.Attempt}
	if d := Plan(f); d.Action == nil || d.Action.Kind != DeleteClaimSecret {
		t.Fatalf("with the Secret: %v, the Machine waits for %q", d.Action, d.Status.WaitingFor)
	}
	f.Secret = Secret{}
	if d := Plan(f); d.Status.Phase != v1alpha1.MachineProvisioning {
		t.Errorf("without it the Machine is %s and waits for %q", d.Status.Phase, d.Status.WaitingFor)
	}
}

// TestAHostSaysThatThereMayBeASecretBeforeItIsWritten has an attempt that began without a request of the host.
func TestAHostSaysThatThereMayBeASecretBeforeItIsWritten(t *testing.T) {
	f := served(t, v1alpha1.MachineProvisioning)
	f.Machine.Status.Attempt, f.Host.SecretAttempt, f.Host.ImageURL, f.Secret = 3, 2, "", Secret{}
	f.Token = &Token{ID: "abc", Expires: f.Now.Add(f.Timeouts.Provisioning + f.Timeouts.Joining)}
	if d := Plan(f); d.Action == nil || d.Action.Kind != RecordSecretAttempt {
		t.Fatalf("the host says an earlier attempt: %v", d.Action)
	}
	f.Host.SecretAttempt = 3
	if d := Plan(f); d.Action == nil || d.Action.Kind != WriteClaimSecret {
		t.Errorf("the host says this attempt: %v", d.Action)
	}
}
