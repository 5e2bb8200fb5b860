package scenario

import (
	"cmp"
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/test/environment"
)

// DefaultProvider is the kind of NodeProvider that the samples have.
const DefaultProvider = "redfish"

// provider is what the demo does otherwise for one kind of NodeProvider.
type provider struct {
	// registrar names in a sentence what registers the hosts, and programs what is started with the rack.
	registrar, programs string
	// takesRawImages is true where images are not compressed.
	takesRawImages bool
	// install changes the installation of Ingot.
	install func(context.Context, *demo) error
	// adapt changes the NodeProvider of the samples.
	adapt func(*demo, []*unstructured.Unstructured) error
	// serve starts, with the rack, what the manager needs to install servers.
	serve func(context.Context, *demo) error
	// isErased reports whether the released host was erased.
	isErased func(observation.Observation, *metal3.BareMetalHost) bool
	// missing returns an error that says what is not on this machine, and how to install it; nil: nothing is needed.
	missing func() error
	// check asserts at the end what is true of this kind alone; nil: nothing.
	check func(*demo) error
}

// providers are the kinds that the demo shows, by the name of the field in the NodeProvider's spec.
var providers = map[string]provider{
	"redfish": {
		registrar: "Redfish", programs: "ingot-manager",
		install:  func(context.Context, *demo) error { return nil },
		adapt:    adaptRedfish,
		serve:    storeAuthority,
		isErased: hasEraseRecord,
	},
	"ironic": ironicProvider,
	"metal3": metal3Provider,
}

func (d *demo) provider() provider { return providers[cmp.Or(d.options.Provider, DefaultProvider)] }

func adaptRedfish(d *demo, samples []*unstructured.Unstructured) error {
	return environment.SetField(samples, "NodeProvider", d.env.BootAddress, "spec", "redfish", "netboot", "address")
}

// storeAuthority stores the certificate authority of the BMCs.
func storeAuthority(ctx context.Context, d *demo) error {
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.fleet.hostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": d.env.Rack.CA()}}
	if err := d.env.ManagementClient.Create(ctx, ca); err != nil {
		return fmt.Errorf("store the BMCs' CA: %w", err)
	}
	return nil
}

// hasEraseRecord reports whether the HostRecord says that the disks were erased.
func hasEraseRecord(s observation.Observation, h *metal3.BareMetalHost) bool {
	r, isKnown := s.Records[types.NamespacedName{Namespace: h.Namespace, Name: h.Name}]
	return isKnown && r.Status.Erased != nil && r.Status.Installed == nil
}
