package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/loopback"
)

// askedAt has the API server ask a replica.
func (s *site) askedAt(t *testing.T, r *replica) {
	t.Helper()
	if err := environment.ConfigureWebhook(t.Context(), s.Client, r.settings.Webhook.Address); err != nil {
		t.Fatal(err)
	}
}

// sliced is the sample that is cut into slices, in those profiles, under another name.
func sliced(t *testing.T, name string, profiles map[string]any) *unstructured.Unstructured {
	t.Helper()
	objects, err := environment.ReadManifests(config.Files, "samples/nodetype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetName() == "h100-mig" {
			o.SetName(name)
			if err := unstructured.SetNestedSlice(o.Object, []any{map[string]any{"profiles": profiles}}, "spec", "gpu", "presentation", "mig", "layout"); err != nil {
				t.Fatal(err)
			}
			return o
		}
	}
	t.Fatal("the samples have no NodeType h100-mig")
	return nil
}

// refuses waits until an impossible layout is refused by the manager itself.
func (s *site) refuses(t *testing.T, when string) {
	t.Helper()
	impossible := map[string]any{"3g.40gb": int64(2), "1g.10gb": int64(1)}
	eventually(t, takeoverLimit, "an impossible layout is refused "+when, func() bool {
		err := s.Client.Create(t.Context(), sliced(t, "impossible", impossible), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "can make no nodes: spec.gpu.presentation.mig.layout[0].profiles: ")
	})
	// The API server may only now have seen that another certificate, or another manager, is to be trusted.
	eventually(t, takeoverLimit, "a layout that fits is accepted "+when, func() bool {
		err := s.Client.Create(t.Context(), sliced(t, "possible", map[string]any{"3g.40gb": int64(2)}), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "can make no nodes") {
			t.Fatalf("a layout that fits is refused %s: %v", when, err)
		}
		return err == nil
	})
}

func TestTheManagersRefuseWhatCanMakeNoNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"osimage", "nodeprovider"} {
		s.apply(t, "samples/"+name+".yaml")
	}
	listening := func(c *settings.Settings) {
		var err error
		if c.Webhook.Address, err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	leader := s.replica(t, listening)
	eventually(t, takeoverLimit, "the first manager leads", leader.leads)
	other := s.replica(t, listening)
	leader.awaitReady(t)
	other.awaitReady(t)
	s.askedAt(t, leader)
	s.refuses(t, "by the replica that leads")
	s.askedAt(t, other)
	s.refuses(t, "by the other")

	// The service account may make, read and replace this one Secret, and no log has seen its key.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: leader.settings.Webhook.CertificateSecret}}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	first := secret.DeepCopy()
	delete(secret.Data, "tls.key")
	if err := s.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, takeoverLimit, "a spoilt certificate is replaced", func() bool {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
		return err == nil && len(secret.Data["tls.key"]) > 0
	})
	s.refuses(t, "with another certificate")
	for _, r := range []*replica{leader, other} {
		for _, key := range [][]byte{first.Data["tls.key"], secret.Data["tls.key"]} {
			quoted, err := json.Marshal(string(key))
			if err != nil {
				t.Fatal(err)
			}
			if out := r.out.String(); strings.Contains(out, string(key)) || strings.Contains(out, strings.Trim(string(quoted), `"`)) {
				t.Error("a key is in the log")
			}
		}
		r.endsInOrder(t)
	}
}
