package machine_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// takeByClusterAPI claims the host as Cluster API's provider for Metal3 does: its consumerRef has no uid.
func (r *metal3Rig) takeByClusterAPI(name string) *metal3.BareMetalHost {
	r.t.Helper()
	h := r.bareHost(name)
	before := h.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "Metal3Machine", Namespace: r.namespace, Name: "workers-x7k2p"}
	h.Labels["cluster.x-k8s.io/cluster-name"] = "workers"
	if err := server.Client.Patch(r.t.Context(), h, client.MergeFrom(before)); err != nil {
		r.t.Error(err)
	}
	return h
}

// isLeft fails the test unless the host is as it was, and no Secret was made for it.
func (r *metal3Rig) isLeft(h *metal3.BareMetalHost) {
	r.t.Helper()
	management.Eventually(r.t, "the Machine says that no host is free", func() bool {
		r.poke(r.namespace)
		c := r.condition(r.namespace, v1alpha1.ConditionClaimed)
		return c.Reason == v1alpha1.ReasonNoHostAvailable && strings.Contains(c.Message, "1 taken")
	})
	if now := r.bareHost(h.Name); now.ResourceVersion != h.ResourceVersion {
		r.t.Errorf("the host of another was written: annotations %v, labels %v, spec %+v", now.Annotations, now.Labels, now.Spec)
	}
	if m := r.machine(r.namespace); m.Status.HostRef != nil {
		r.t.Errorf("the Machine has host %s", m.Status.HostRef.Name)
	}
	if err := server.Client.Get(r.t.Context(), r.key(h.Name+"-claim-1"), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		r.t.Errorf("there is a claim Secret: %v", err)
	}
}

func TestAHostOfClusterAPIIsNotTouched(t *testing.T) {
	r := newMetal3Rig(t, true)
	h := r.takeByClusterAPI("server-00")
	r.start()
	r.addMachine(r.namespace)
	r.isLeft(h)
}

// TestAHostThatClusterAPITakesBetweenTheLookAndTheClaimIsLeft has Cluster API claim the host when Ingot's claim is on its way already.
func TestAHostThatClusterAPITakesBetweenTheLookAndTheClaimIsLeft(t *testing.T) {
	r := newMetal3Rig(t, true)
	var once sync.Once
	taken := make(chan *metal3.BareMetalHost, 1)
	r.writes.delay = func(path string) time.Duration {
		if strings.HasSuffix(path, "/baremetalhosts/server-00") {
			once.Do(func() { taken <- r.takeByClusterAPI("server-00") })
		}
		return 0
	}
	r.start()
	r.addMachine(r.namespace)
	select {
	case h := <-taken:
		r.isLeft(h)
	case <-time.After(time.Minute):
		t.Fatal("Ingot did not try to claim the host")
	}
}
