package secretwatch

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// changes are those that a source has told.
type changes struct {
	mu   sync.Mutex
	told []Change
}

func (c *changes) add(_ context.Context, change Change) []reconcile.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, change)
	return nil
}

// await waits for a change of the Secret, and returns all that were told before it and this one.
func (c *changes) await(t *testing.T, what string, is func(Change) bool) []Change {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		for i, change := range c.told {
			if is(change) {
				before := c.told[:i+1]
				c.told = c.told[i+1:]
				c.mu.Unlock()
				return before
			}
		}
		c.mu.Unlock()
	}
	t.Fatalf("not told: %s", what)
	return nil
}

func TestTheChangesOfSecretsAreToldButThoseOfClaims(t *testing.T) {
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{Scheme: server.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	var got changes
	namespace, other := server.Namespace(t), server.Namespace(t)
	secret := func(namespace, name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, StringData: map[string]string{"password": "s3cret"}}
	}
	ofClaim := map[string]string{v1alpha1.LabelMachine: "uid"}
	source := New(mgr, got.add)
	if err := source.Start(t.Context(), workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())); err != nil {
		t.Fatal(err)
	}
	server.Create(t, secret(namespace, "early", nil), secret(namespace, "early-claim", ofClaim))
	for range 2 {
		if err := source.Begin(namespace); err != nil {
			t.Fatal(err)
		}
	}
	named := func(name string) func(Change) bool {
		return func(c Change) bool { return c.Secret.Name == name }
	}
	first := got.await(t, "what is there when the watch begins", named("early"))
	if len(first) != 1 || !first[0].IsFirstList || first[0].Version == "" {
		t.Errorf("first list: %+v", first)
	}
	late, claim := secret(namespace, "late", nil), secret(namespace, "late-claim", ofClaim)
	server.Create(t, claim, secret(other, "elsewhere", nil), late)
	if told := got.await(t, "a creation", named("late")); len(told) != 1 || told[0].IsFirstList {
		t.Errorf("creation: %+v", told)
	}
	late.StringData = map[string]string{"password": "other"}
	if err := server.Client.Update(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if told := got.await(t, "a change", named("late")); len(told) != 1 || told[0].Version != late.ResourceVersion {
		t.Errorf("change: %+v, want version %s", told, late.ResourceVersion)
	}
	if err := server.Client.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if told := got.await(t, "a deletion", named("late")); len(told) != 1 || told[0].Version != "" {
		t.Errorf("deletion: %+v", told)
	}
	source.End(namespace)
	server.Create(t, secret(namespace, "after", nil))
	if err := source.Begin(namespace); err != nil {
		t.Fatal(err)
	}
	if told := got.await(t, "what is there when it begins again", named("after")); !told[len(told)-1].IsFirstList {
		t.Errorf("the watch went on after its end: %+v", told)
	}
}

func TestNothingButNameAndVersionIsKept(t *testing.T) {
	kept, err := nameAndVersion(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "metal", Name: "bmc", ResourceVersion: "7", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"password":"s3cret"}}`},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := kept.(client.Object)
	if strings.Contains(string(text), "s3cret") || strings.Contains(string(text), "kubectl") || !ok || client.ObjectKeyFromObject(o) != (client.ObjectKey{Namespace: "metal", Name: "bmc"}) || o.GetResourceVersion() != "7" {
		t.Errorf("kept %s", text)
	}
}
