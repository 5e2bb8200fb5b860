package baremetaloperator_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// imageURL is that of the image which the tests install.
const imageURL = "http://127.0.0.1/image-1.raw.zst"

// site is one host, its simulated server, and an operator to which the time is told.
type site struct {
	t        *testing.T
	key      types.NamespacedName
	server   *baremetaloperator.SimulatedServer
	options  baremetaloperator.Options
	operator *baremetaloperator.Operator
	now      time.Time
	// due is when the operator looks again; zero: only after a change.
	due time.Time
	// isFull makes the service take no further work.
	isFull bool
}

var addConditions = sync.OnceValue(func() error { return baremetaloperator.AddConditions(context.Background(), server.Client) })

// newSite has a host that the operator has not looked at. Conditions chooses the release.
func newSite(t *testing.T, conditions bool, changes ...func(*metal3.BareMetalHost)) *site {
	t.Helper()
	if err := addConditions(); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, key: types.NamespacedName{Namespace: server.Namespace(t), Name: "server-00"}, server: &baremetaloperator.SimulatedServer{}, now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	s.options = baremetaloperator.Options{
		Client: server.Client, Conditions: conditions, Retries: 3, Now: func() time.Time { return s.now },
		Server:   func(types.NamespacedName) baremetaloperator.Server { return s.server },
		Capacity: func(types.NamespacedName) bool { return !s.isFull },
	}
	s.restart()
	h := &metal3.BareMetalHost{ObjectMeta: s.meta(s.key.Name), Spec: metal3.BareMetalHostSpec{
		BootMACAddress: "52:54:00:00:00:01", BMC: metal3.BMCDetails{Address: "redfish://10.0.0.1/" + s.key.Name, CredentialsName: "bmc"},
	}}
	for _, change := range changes {
		change(h)
	}
	s.createSecret("bmc", map[string][]byte{"username": []byte("root"), "password": []byte("calvin")})
	for _, name := range documents {
		s.createSecret(name, map[string][]byte{name: []byte(`{"is":"` + name + `"}`)})
	}
	if err := server.Client.Create(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.due = s.now
	return s
}

// documents are the keys of the Secrets of the config drive. In lower case they are their names too.
var documents = []string{"userData", "networkData", "metaData"}

func (s *site) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.key.Namespace, Name: name}
}

func (s *site) createSecret(name string, data map[string][]byte) {
	s.t.Helper()
	if err := server.Client.Create(s.t.Context(), &corev1.Secret{ObjectMeta: s.meta(strings.ToLower(name)), Data: data}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) secret(name string) *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{}
	if err := server.Client.Get(s.t.Context(), types.NamespacedName{Namespace: s.key.Namespace, Name: strings.ToLower(name)}, secret); client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return secret
}

// restart starts another operator in the place of the one before.
func (s *site) restart() { s.operator = baremetaloperator.New(s.options) }

// host returns the host; its UID is empty when there is none.
func (s *site) host() *metal3.BareMetalHost {
	s.t.Helper()
	h := &metal3.BareMetalHost{}
	if err := server.Client.Get(s.t.Context(), s.key, h); client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *site) state() metal3.ProvisioningState { return s.host().Status.Provisioning.State }

// raw returns a field of the status that the Go type may lack.
func (s *site) raw(fields ...string) any {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(metal3.GroupVersion.WithKind("BareMetalHost"))
	if err := server.Client.Get(s.t.Context(), s.key, o); err != nil {
		s.t.Fatal(err)
	}
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, append([]string{"status"}, fields...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return value
}

// condition returns the condition, which is empty when the host has none of that type.
func (s *site) condition(kind string) metav1.Condition {
	s.t.Helper()
	list, _ := s.raw("conditions").([]any)
	var all []metav1.Condition
	for _, entry := range list {
		var c metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(entry.(map[string]any), &c); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, c)
	}
	if c := meta.FindStatusCondition(all, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// look lets the operator look once, whether or not a look is due, and returns its error.
func (s *site) look() error {
	s.t.Helper()
	result, err := s.operator.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: s.key})
	switch {
	case err != nil:
		s.due = s.now.Add(time.Second)
	case result.RequeueAfter == 0:
		s.due = time.Time{}
	default:
		s.due = s.now.Add(result.RequeueAfter)
	}
	return err
}

// step tells the operator the time of its next look, and lets it look. It returns whether one was due.
func (s *site) step() bool {
	s.t.Helper()
	if s.due.IsZero() {
		return false
	}
	if s.due.After(s.now) {
		s.now = s.due
	}
	if err := s.look(); err != nil && !apierrors.IsConflict(err) {
		s.t.Logf("the operator: %v", err)
	}
	return true
}

// maxSteps is more looks than any course of the tests needs.
const maxSteps = 80

// until lets the time pass and the operator look until the condition holds.
func (s *site) until(what string, holds func() bool) {
	s.t.Helper()
	for range maxSteps {
		if holds() {
			return
		}
		if !s.step() {
			break
		}
	}
	if !holds() {
		s.t.Fatalf("not reached: %s; the operator looks again at %v, and the host is %s", what, s.due, s.describe())
	}
}

func (s *site) describe() string {
	text, err := json.Marshal(s.host().Status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *site) untilState(want metal3.ProvisioningState) {
	s.t.Helper()
	s.until("the host is "+string(want), func() bool { return s.state() == want })
}

// settle lets the operator look until it waits for its next look at the power, or for a change.
func (s *site) settle() {
	s.t.Helper()
	s.until("nothing is left to do", func() bool { return s.due.IsZero() || s.due.Sub(s.now) >= time.Minute })
}

// edit changes the host, which the operator sees at once where the change is one that it watches.
func (s *site) edit(change func(*metal3.BareMetalHost)) {
	s.t.Helper()
	h := s.host()
	before := h.DeepCopy()
	change(h)
	if err := server.Client.Patch(s.t.Context(), h, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
	s.due = s.now
}

// install asks for the image.
func (s *site) install(url string) {
	s.t.Helper()
	s.edit(func(h *metal3.BareMetalHost) {
		h.Spec.Online, h.Spec.Image = true, &metal3.Image{URL: url, Checksum: "00", ChecksumType: metal3.SHA256}
		for i, ref := range []**corev1.SecretReference{&h.Spec.UserData, &h.Spec.NetworkData, &h.Spec.MetaData} {
			*ref = &corev1.SecretReference{Name: strings.ToLower(documents[i])}
		}
	})
}

// uninstall asks for no image.
func (s *site) uninstall() {
	s.t.Helper()
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.Online, h.Spec.Image = false, nil })
}

func (s *site) delete() {
	s.t.Helper()
	if err := server.Client.Delete(s.t.Context(), s.host()); err != nil {
		s.t.Fatal(err)
	}
	s.due = s.now
}

// take takes a Secret away, and returns what creates it again.
func (s *site) take(name string) (giveBack func()) {
	s.t.Helper()
	create, err := baremetaloperator.TakeSecret(s.t.Context(), server.Client, types.NamespacedName{Namespace: s.key.Namespace, Name: strings.ToLower(name)})
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		if err := create(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

const (
	minute = time.Minute
	// pollInterval is how soon the operator looks again at work that is under way.
	pollInterval = 10 * time.Second
)
