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
	var s secretCache
	one, key := cachedSecret{named("one"), noon}, client.ObjectKey{Namespace: "metal", Name: "one"}
	if s.get(key, noon, within).secret != nil {
		t.Error("something is known before anything was read")
	}
	s.add(one)
	if s.get(key, noon.Add(within-1), within) != one {
		t.Error("it is forgotten too early")
	}
	if s.get(key, noon.Add(within), within).secret != nil {
		t.Error("it is kept too long")
	}
	// Another host has read it anew while this one still used the older reading.
	anew := cachedSecret{named("one"), noon.Add(within)}
	s.add(anew)
	s.add(one)
	if s.get(key, noon.Add(within), within) != anew {
		t.Error("an older reading took the place of the newer one")
	}
	s.forget(key, noon.Add(within))
	if s.get(key, noon.Add(within), within).secret != nil {
		t.Error("what a BMC refused is used again")
	}
	s.add(one)
	if s.get(key, noon.Add(within), within).secret != nil {
		t.Error("a use is no new read")
	}
	s.add(one)
	s.get(client.ObjectKey{Namespace: "metal", Name: "two"}, noon.Add(time.Hour), within)
	if len(s.known) != 0 {
		t.Errorf("%d old Secrets stay in memory", len(s.known))
	}
}
