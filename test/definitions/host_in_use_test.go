package definitions_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testHostInUse expects that the policies are applied.
func testHostInUse(t *testing.T, r claimRig) {
	m := r.heldMachine(t, "default", "rack-2")
	host := r.claimedHost(t, "rack-2", m)
	const (
		on, off = `{"spec":{"online":true}}`, `{"spec":{"online":false}}`
		image   = `{"spec":{"online":true,"image":{"url":"http://images/x","checksum":"0123"}}}`
		removed = `{"spec":{"image":null}}`
		// What kubectl sends for a manifest of the host as it was registered, if the one before had online true.
		registered = `{"metadata":{"labels":{"rack":"2"}},"spec":{"online":false}}`
	)
	attempt{"power-off of a host that is to be off already", r.operator, off, ""}.run(t, host)
	if err := r.manager.Patch(t.Context(), host, merge(image)); err != nil {
		t.Fatalf("the manager installs: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); !apierrors.IsForbidden(r.admin.Patch(t.Context(), host.DeepCopyObject().(client.Object), merge(off), client.DryRunAll)); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the policy on hosts in use is not enforced a minute after it was applied")
		}
	}
	drain := "kubectl ingot drain -n default " + m.Name + " --power-off"
	for _, a := range []attempt{
		{"the manager powers it off", r.manager, off, ""},
		{"an administrator powers it off", r.admin, off, drain},
		{"an operator powers it off", r.operator, off, drain},
		{"the verb abandon is not for this", r.keeper, off, drain},
		{"the manifest that registered it is applied again", r.operator, registered, "Leave spec.online out of a manifest"},
		{"the manager releases it", r.manager, `{"spec":{"online":false,"image":null}}`, ""},
		{"an administrator removes the image", r.admin, removed, "kubectl delete machine -n default " + m.Name},
		{"an operator changes the image", r.operator, `{"spec":{"image":{"url":"http://images/y"}}}`, "change the osImageRef of the NodeType"},
		{"an operator forbids its power-off", r.operator, `{"spec":{"disablePowerOff":true}}`, "would keep it from a roll and a release"},
		{"the cleaning mode of a host that has its own", r.operator, `{"spec":{"automatedCleaningMode":"disabled"}}`, ""},
		{"an erase is said to have run", r.operator, `{"metadata":{"annotations":{"ingot.dev/last-erase":"Metadata"}}}`, "ingot.dev/last-erase"},
		{"a label", r.operator, `{"metadata":{"labels":{"rack":"2"}}}`, ""},
		{"a reboot", r.operator, `{"metadata":{"annotations":{"reboot.metal3.io":""}}}`, ""},
	} {
		a.run(t, host)
	}
	if err := r.manager.Patch(t.Context(), host, merge(off)); err != nil {
		t.Fatal(err)
	}
	for _, a := range []attempt{
		{"an operator powers on a server under repair", r.operator, on, "would boot if it became true"},
		{"an administrator powers it on", r.admin, on, drain},
		{"a manifest with online true is applied again", r.operator, `{"metadata":{"labels":{"rack":"2"}},"spec":{"online":true}}`, "kubectl apply --server-side"},
		{"a manifest with online as it is", r.operator, registered, ""},
		{"the manager powers it on", r.manager, on, ""},
	} {
		a.run(t, host)
	}
	for aside, change := range map[string]string{
		`{"metadata":{"annotations":{"ingot.dev/cleaning-mode":"metadata"}},"spec":{"automatedCleaningMode":"disabled"}}`:        `{"spec":{"automatedCleaningMode":"metadata"}}`,
		`{"metadata":{"annotations":{"ingot.dev/cleaning-mode":null}},"spec":{"automatedCleaningMode":"metadata","image":null}}`: `{"spec":{"automatedCleaningMode":"disabled"}}`,
	} {
		if err := r.manager.Patch(t.Context(), host, merge(image)); err != nil {
			t.Fatal(err)
		}
		if err := r.manager.Patch(t.Context(), host, merge(aside)); err != nil {
			t.Fatal(err)
		}
		attempt{"the cleaning mode in a roll or a release", r.admin, change, "only the manager changes spec.automatedCleaningMode"}.run(t, host)
		attempt{"the manager changes it", r.manager, change, ""}.run(t, host)
	}
	// As kubectl apply --server-side sends it.
	applied := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": map[string]any{"name": host.Name, "namespace": host.Namespace, "labels": map[string]any{"rack": "2"}},
	}})
	if err := r.operator.Apply(t.Context(), applied, client.FieldOwner("kubectl"), client.DryRunAll); err != nil {
		t.Errorf("a manifest without online is applied by the API server: %v", err)
	}
	if err := r.manager.Patch(t.Context(), host, merge(`{"spec":{"online":true,"consumerRef":null}}`)); err != nil {
		t.Fatal(err)
	}
	attempt{"power-off of a free host", r.operator, off, ""}.run(t, host)
	other := `{"spec":{"consumerRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Metal3Machine","name":"x"}}}`
	if err := r.admin.Patch(t.Context(), host, merge(other)); err != nil {
		t.Fatal(err)
	}
	attempt{"power-off of another system's host", r.operator, off, ""}.run(t, host)
	attempt{"the image of another system's host", r.operator, removed, ""}.run(t, host)
}
