package operator

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

func TestTheInstallersCanDoWhatTheirKindsSay(t *testing.T) {
	for name, c := range map[string]struct {
		installer hardware.Installer
		kind      providerkind.Kind
	}{
		"redfish": {direct.New(direct.Options{}), providerkind.Redfish},
		"ironic":  {ironic.New(ironic.Options{}), providerkind.Ironic},
	} {
		if diff := cmp.Diff(c.kind.Installer, c.installer.Capabilities()); diff != "" {
			t.Errorf("%s (-kind +installer):\n%s", name, diff)
		}
	}
}

// secretReader reads one Secret, and counts.
type secretReader struct {
	client.Reader
	data  map[string]string
	reads int
	// failure is what a read ends with; nil: the Secret.
	failure error
}

// Get implements client.Reader.
func (r *secretReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	r.reads++
	if r.failure != nil {
		return r.failure
	}
	secret := o.(*corev1.Secret)
	secret.Name, secret.Data = key.Name, map[string][]byte{}
	for name, value := range r.data {
		secret.Data[name] = []byte(value)
	}
	return nil
}

func TestEachIronicHasItsInstallerAndItsCredentialsAreReadAgain(t *testing.T) {
	now := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	all := &installers{direct: direct.New(direct.Options{}), clock: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	provider := func(uid, endpoint string, generation int64) *v1alpha1.NodeProvider {
		return &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Generation: generation, Name: uid},
			Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal", Ironic: &v1alpha1.IronicProvider{Endpoint: endpoint}}}
	}
	first := all.of(provider("a", "http://a", 1))
	if first == all.direct || all.of(provider("a", "http://a", 1)) != first {
		t.Error("every call for a NodeProvider returns the same Installer of its own")
	}
	changed := all.of(provider("a", "http://b", 2))
	if changed == first || all.of(provider("a", "http://a", 1)) != changed {
		t.Error("a changed NodeProvider has a new Installer, which one that is read late does not replace")
	}
	if all.of(&v1alpha1.NodeProvider{Spec: v1alpha1.NodeProviderSpec{Redfish: &v1alpha1.RedfishProvider{}}}) != all.direct {
		t.Error("redfish NodeProviders share one")
	}

	reader := &secretReader{data: map[string]string{"username": "u", "password": "first"}}
	secret := &ironicSecret{reader: reader, clock: all.clock, key: client.ObjectKey{Namespace: "metal", Name: "ironic"}}
	expect := func(want ironic.Credentials, reads int) {
		t.Helper()
		got, err := secret.credentials(t.Context())
		if err != nil || got != want || reader.reads != reads {
			t.Errorf("%v after %d reads, expected others or %d reads", err, reader.reads, reads)
		}
	}
	expect(ironic.Credentials{Username: "u", Password: "first"}, 1)
	reader.data["password"] = "second"
	expect(ironic.Credentials{Username: "u", Password: "first"}, 1)
	now = now.Add(credentialsAge)
	expect(ironic.Credentials{Username: "u", Password: "second"}, 2)

	application := &ironicSecret{reader: reader, clock: all.clock, key: secret.key, keystoneURL: "https://keystone/v3"}
	_, err := application.credentials(t.Context())
	if err == nil || !strings.Contains(err.Error(), "applicationCredentialID is missing in Secret metal/ironic") || strings.Contains(err.Error(), "second") {
		t.Errorf("a Secret of the other kind: %v", err)
	}
	reader.data = map[string]string{"applicationCredentialID": "id", "applicationCredentialSecret": "s"}
	got, err := application.credentials(t.Context())
	if want := (ironic.Credentials{KeystoneURL: "https://keystone/v3", ApplicationID: "id", ApplicationSecret: "s"}); err != nil || got != want {
		t.Errorf("an application credential: %v", err)
	}
}

func TestASecretOfAnIronicThatIsNotReadSaysWhoMustAct(t *testing.T) {
	of := schema.GroupResource{Resource: "secrets"}
	for _, c := range []struct {
		failure error
		kind    hardware.Kind
		want    string
	}{
		{apierrors.NewNotFound(of, "ironic"), hardware.Unauthorized, "correct the Secret of the NodeProvider's spec.ironic.credentialsSecretRef: there is no Secret metal/ironic"},
		{apierrors.NewForbidden(of, "ironic", nil), hardware.Unauthorized, "bind ClusterRole ingot-manager-hosts"},
		{apierrors.NewServerTimeout(of, "get", 1), hardware.Unreachable, "metal/ironic"},
	} {
		all := &installers{direct: direct.New(direct.Options{}), reader: &secretReader{failure: c.failure}, clock: time.Now, log: slog.New(slog.DiscardHandler)}
		answer, err := all.check(t.Context(), &v1alpha1.NodeProvider{Spec: v1alpha1.NodeProviderSpec{
			HostNamespace: "metal", Ironic: &v1alpha1.IronicProvider{Endpoint: "http://127.0.0.1:1", CredentialsSecretRef: &v1alpha1.LocalReference{Name: "ironic"}},
		}})
		if answer != "" || hardware.KindOf(err) != c.kind || hardware.ReasonOf(err) == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: seen %q, %v", c.failure, answer, err)
		}
	}
}
