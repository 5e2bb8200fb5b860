package vm_test

import (
	"os"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/swtpm"
)

// TestAVirtualServerProvesByItsTPMThatItIsTheServer boots a server with a TPM by the network, where anybody may ask: its owner has listed another key, so that nothing is
// written; then the key that it has is trusted and the erase is a proof; then its board is replaced, which a person accepts with the command in the message.
func TestAVirtualServerProvesByItsTPMThatItIsTheServer(t *testing.T) {
	require.Turn(t, 1)
	swtpm.Need(t)
	s := newSite(t, variant{hasTPM: true})

	s.listTPM(strings.Repeat("0", 64))
	s.order("plain", "plain")
	s.awaitOtherTPM("")
	s.listTPM("")
	first := s.awaitKept(hardware.TPMFirstUse)
	s.awaitInstalled()
	s.release("plain")
	s.awaitErased()
	s.wantProof(hardware.TPMKnown)

	s.replaceBoard()
	s.order("again", "plain")
	accepted := s.awaitOtherTPM(first)
	s.mustNotBoot("after another TPM has answered")
	s.listTPM(accepted)
	if second := s.awaitKept(hardware.TPMListed); second != accepted || second == first {
		t.Errorf("the key of the board before is %s, %s is accepted, and %s is kept", first, accepted, second)
	}
	s.awaitInstalled()
	s.release("again")
	s.awaitErased()
	s.wantProof(hardware.TPMListed)
}

// replaceBoard gives the server another TPM at its next power-on.
func (s *site) replaceBoard() {
	s.t.Helper()
	state, err := os.MkdirTemp(s.env.Dir, "tpm-")
	if err != nil {
		s.t.Fatal(err)
	}
	s.tpm.Store(state)
}

// listTPM lists the key of the server's TPM; empty: none is listed.
func (s *site) listTPM(key string) {
	s.t.Helper()
	host := &metal3.BareMetalHost{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: hosts, Name: "server-1"}, host); err != nil {
		s.t.Fatal(err)
	}
	before := host.DeepCopy()
	metav1.SetMetaDataAnnotation(&host.ObjectMeta, v1alpha1.AnnotationTPMKey, key)
	if key == "" {
		delete(host.Annotations, v1alpha1.AnnotationTPMKey)
	}
	if err := s.client.Patch(s.t.Context(), host, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// awaitOtherTPM waits until an attempt has refused another TPM than the known one, and returns the key that the command in its message accepts.
func (s *site) awaitOtherTPM(known string) string {
	s.t.Helper()
	r := s.await("another TPM is refused", func(r *v1alpha1.HostRecord) bool {
		attempt := r.Status.Progress()
		return isOf(r, hardware.OpInstall) && attempt != nil && attempt.Reason == string(hardware.ReasonTPMDiffers)
	})
	attempt := r.Status.Progress()
	_, command, _ := strings.Cut(attempt.Message, "kubectl annotate --overwrite bmh -n metal server-1 "+v1alpha1.AnnotationTPMKey+"=")
	key, _, _ := strings.Cut(command, ";")
	if attempt.TPM == nil || attempt.TPM.Proof != v1alpha1.TPMProof(hardware.TPMDiffers) || key != attempt.TPM.Key || attempt.Agent != nil || !strings.Contains(attempt.Message, hardware.ShortTPMKey(known)) {
		s.t.Errorf("the message is %q, with %+v", attempt.Message, attempt.TPM)
	}
	return key
}

// awaitKept waits until the key of the server's TPM is kept with the proof, and returns it.
func (s *site) awaitKept(proof hardware.TPMProof) string {
	s.t.Helper()
	r := s.await("the TPM is kept", func(r *v1alpha1.HostRecord) bool {
		return r.Status.TPM != nil && r.Status.TPM.Proof == v1alpha1.TPMProof(proof)
	})
	return r.Status.TPM.Key
}

// wantProof compares the channel of the last erase, and what the TPM has proved of its agent.
func (s *site) wantProof(want hardware.TPMProof) {
	s.t.Helper()
	r, err := s.record()
	if err != nil || r.Status.Erased == nil {
		s.t.Fatal(err, r.Status.Erased)
	}
	if e := r.Status.Erased; e.Channel != v1alpha1.AgentChannel(hardware.ChannelNetwork) || e.TPM != v1alpha1.TPMProof(want) || !hardware.IsProof(hardware.Channel(e.Channel), want) {
		s.t.Errorf("the erase was reported through %s with %s", e.Channel, e.TPM)
	}
}
