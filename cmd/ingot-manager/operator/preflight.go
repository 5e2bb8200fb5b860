package operator

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// preflightLimit limits one request to an API server that may not be there.
const preflightLimit = 15 * time.Second

// preflight checks that the management cluster answers and serves the kinds that are needed. Without it, controllers would fail to start
// one after the other, and no message would say what to apply.
func preflight(cluster *rest.Config, scheme *runtime.Scheme) error {
	cluster = rest.CopyConfig(cluster)
	cluster.Timeout = preflightLimit
	d, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return fmt.Errorf("make a client of the management cluster %s: %w", cluster.Host, err)
	}
	if _, err := d.ServerVersion(); err != nil {
		return fmt.Errorf("the management cluster %s does not answer: %w: see whether its API server runs and can be reached from here", cluster.Host, err)
	}
	var missing []error
	for _, group := range []struct {
		version schema.GroupVersion
		kinds   []string
		mend    string
	}{
		{v1alpha1.GroupVersion, kindsOf(scheme, v1alpha1.GroupVersion), "apply the CRDs: kubectl apply --server-side -k config/crd"},
		{
			metal3.GroupVersion, []string{"BareMetalHost"},
			"install the baremetal-operator, or without one: kubectl apply --server-side -f config/crd/metal3/metal3.io_baremetalhosts.yaml",
		},
	} {
		kinds, err := unservedKinds(d, group.version, group.kinds)
		if err != nil {
			return fmt.Errorf("ask the management cluster %s for its kinds of %s: %w", cluster.Host, group.version, err)
		}
		if len(kinds) > 0 {
			missing = append(missing, fmt.Errorf("the management cluster %s does not serve %s %s: %s",
				cluster.Host, group.version, strings.Join(kinds, ", "), group.mend))
		}
	}
	return errors.Join(missing...)
}

// unservedKinds returns the kinds that the API server does not serve.
func unservedKinds(d discovery.DiscoveryInterface, version schema.GroupVersion, kinds []string) ([]string, error) {
	served, err := d.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return kinds, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, kind := range kinds {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
			out = append(out, kind)
		}
	}
	return out, nil
}

// kindsOf lists the kinds of objects that a group version has, sorted.
func kindsOf(scheme *runtime.Scheme, version schema.GroupVersion) []string {
	object := reflect.TypeFor[client.Object]()
	var kinds []string
	for kind, t := range scheme.KnownTypes(version) {
		if reflect.PointerTo(t).Implements(object) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}
