package machine_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// claimSecrets returns the names of the claim Secrets that exist.
func (r *metal3Rig) claimSecrets() []string {
	r.t.Helper()
	list, names := &corev1.SecretList{}, []string(nil)
	if err := server.Client.List(r.t.Context(), list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	for _, s := range list.Items {
		if strings.Contains(s.Name, "-claim") {
			names = append(names, s.Name)
		}
	}
	return names
}

// TestNoDocumentsAreLeftOfARolledAttempt has an attempt whose documents are never written after one that was installed, and deletes the Machine then.
func TestNoDocumentsAreLeftOfARolledAttempt(t *testing.T) {
	r := newMetal3Rig(t, true)
	next, licence := r.addRevision(2, "1.37.0", licensed), &corev1.Secret{ObjectMeta: r.meta("licence"), Data: map[string][]byte{licenceKey: []byte(r.licence())}}
	server.Create(t, licence)
	r.start()
	r.addMachine(r.namespace)
	r.untilPhase(v1alpha1.MachineJoining)
	if got := r.claimSecrets(); len(got) != 1 || got[0] != "server-00-claim-1" {
		t.Fatalf("the first attempt has the Secrets %v", got)
	}
	r.want(r.namespace, next)
	r.until("the host is deprovisioned for the next attempt", func() bool { return r.bareHost("server-00").Spec.Image == nil })
	if err := server.Client.Delete(t.Context(), licence); err != nil {
		t.Fatal(err)
	}
	r.untilPhase(v1alpha1.MachineProvisioning)
	if got := r.claimSecrets(); len(got) > 0 {
		t.Errorf("the second attempt has begun, and there are the Secrets %v", got)
	}
	r.release()
	if got := r.claimSecrets(); len(got) > 0 {
		t.Errorf("the Machine is gone, and there are the Secrets %v", got)
	}
}

// TestTheReleaseOfAHostWhoseMachineIsGoneFindsItsSecrets has a manager that died after it had written the documents of the second attempt, and before it
// requested its installation.
func TestTheReleaseOfAHostWhoseMachineIsGoneFindsItsSecrets(t *testing.T) {
	r := newMetal3Rig(t, true)
	for _, name := range []string{"server-00-claim-1", "server-00-claim-2"} {
		server.Create(t, &corev1.Secret{ObjectMeta: r.meta(name)})
	}
	h := r.bareHost("server-00")
	before := h.DeepCopy()
	h.Annotations = map[string]string{
		v1alpha1.AnnotationRelease: "m1", v1alpha1.AnnotationSecretAttempt: "2",
		v1alpha1.AnnotationInstallation: `{"machine":{"namespace":"x","name":"gone","uid":"m1"},"attempt":1}`,
	}
	h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: r.namespace, Name: "gone", UID: "m1"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.start()
	management.Eventually(t, "the host is freed", func() bool { return r.bareHost("server-00").Spec.ConsumerRef == nil })
	if got := r.claimSecrets(); len(got) > 0 {
		t.Errorf("the host is freed, and there are the Secrets %v", got)
	}
	if a := r.bareHost("server-00").Annotations; a[v1alpha1.AnnotationSecretAttempt] != "" {
		t.Errorf("the host is freed with the annotations %v", a)
	}
}
