package host

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSecretsAreKeptForAMoment(t *testing.T) {
	const within = 30 * time.Second
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	named := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: name}}
	}
	var s secrets
	one, key := named("one"), client.ObjectKey{Namespace: "metal", Name: "one"}
	if s.recent(key, noon, within) != nil {
		t.Error("something is known before anything was read")
	}
	s.remember(one, noon)
	s.remember(one, noon.Add(within-1)) // a use is no new read
	if s.recent(key, noon.Add(within-1), within) != one {
		t.Error("it is forgotten too early")
	}
	if s.recent(key, noon.Add(within), within) != nil {
		t.Error("it is kept too long")
	}
	s.remember(one, noon)
	s.forget(key)
	if s.recent(key, noon, within) != nil {
		t.Error("what a BMC refused is used again")
	}
	s.remember(one, noon)
	s.recent(client.ObjectKey{Namespace: "metal", Name: "two"}, noon.Add(time.Hour), within)
	if len(s.known) != 0 {
		t.Errorf("%d old Secrets stay in memory", len(s.known))
	}
}
