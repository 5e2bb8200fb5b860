package metal3rack

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// Faults returns what goes wrong with the server of the host. It is nil when there is none of that name.
func (s *Site) Faults(host string) *baremetaloperator.Faults {
	one := s.servers[types.NamespacedName{Namespace: s.options.Namespace, Name: host}]
	if one == nil {
		return nil
	}
	return &one.Faults
}

// TakeSecret deletes the Secret of the namespace with its finalizers, and returns a function that creates it again.
func (s *Site) TakeSecret(ctx context.Context, name string) (giveBack func(context.Context) error, err error) {
	return baremetaloperator.TakeSecret(ctx, s.client, types.NamespacedName{Namespace: s.options.Namespace, Name: name})
}

// DeleteHost deletes the BareMetalHost. The operator's finalizer keeps it until its server has been given up.
func (s *Site) DeleteHost(ctx context.Context, name string) error {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: s.options.Namespace, Name: name}}
	if err := client.IgnoreNotFound(s.client.Delete(ctx, h)); err != nil {
		return fmt.Errorf("delete host %s: %w", name, err)
	}
	return nil
}
