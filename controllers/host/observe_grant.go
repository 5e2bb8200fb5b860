package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

// grant asks for the erase of a host of unknown content, where it is needed; nil: it is not.
func (r *Reconciler) grant(ctx context.Context, host *metal3.BareMetalHost, isNeeded bool) (*breaker.Answer, error) {
	key := client.ObjectKeyFromObject(host).String()
	if !isNeeded {
		r.Grants.Ask("BareMetalHost "+key, nil, nil)
		return nil, nil
	}
	var all metal3.BareMetalHostList
	if err := r.Client.List(ctx, &all, client.InNamespace(host.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	sizes := map[breaker.Domain]breaker.Size{}
	for i := range all.Items {
		for _, d := range domainsOf(&all.Items[i]) {
			sizes[d] = breaker.Size{Servers: sizes[d].Servers + 1}
		}
	}
	asks := []breaker.Ask{{Act: breaker.Erase, Object: key, Domains: domainsOf(host)}}
	return &r.Grants.Ask("BareMetalHost "+key, asks, sizes)[0], nil
}

// domainsOf returns what of a host may be lost as a whole.
func domainsOf(host *metal3.BareMetalHost) []breaker.Domain {
	out := []breaker.Domain{{Kind: "host namespace", Name: host.Namespace}}
	if rack := host.Labels[v1alpha1.LabelRack]; rack != "" {
		out = append(out, breaker.Domain{Kind: "rack", Name: rack})
	}
	return out
}
