package host

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/serverclock"
)

// decide decides by what it observes what happens next, and asks for a grant or takes a turn where the decision needs one.
func (r *Reconciler) decide(ctx context.Context, provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (observation, plan.Decision, error) {
	obs, err := r.observe(ctx, provider, host, record)
	if err != nil {
		return obs, plan.Decision{}, err
	}
	key, decision := client.ObjectKeyFromObject(host), plan.Plan(obs.facts)
	if !decision.NeedsGrant {
		r.withdraw(key)
	}
	if !decision.IsFoundOff {
		r.powerOns.leave(key)
	}
	switch {
	case decision.NeedsGrant:
		if obs.facts.Grant, err = r.askForErase(ctx, host); err != nil {
			return obs, decision, err
		}
	case decision.IsFoundOff:
		obs.facts.PowerOnWait = r.powerOns.wait(key, serverclock.Steady(r.Clock))
	default:
		return obs, decision, nil
	}
	return obs, plan.Plan(obs.facts), nil
}

// askForErase asks for the erase of a host of unknown content.
func (r *Reconciler) askForErase(ctx context.Context, host *metal3.BareMetalHost) (*breaker.Answer, error) {
	var all metal3.BareMetalHostList
	if err := r.Client.List(ctx, &all, client.InNamespace(host.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	key := client.ObjectKeyFromObject(host)
	ask := breaker.Ask{Act: breaker.Erase, Fault: breaker.Fault{Object: key.String()}}
	for _, d := range domainsOf(host) {
		group := &breaker.Group{Domain: d}
		for i := range all.Items {
			if slices.Contains(domainsOf(&all.Items[i]), d) {
				group.Servers++
			}
		}
		ask.Groups = append(ask.Groups, group)
	}
	return &r.Grants.Ask(actor(key), []breaker.Ask{ask})[0], nil
}

// withdraw asks for nothing any more.
func (r *Reconciler) withdraw(host types.NamespacedName) { r.Grants.Ask(actor(host), nil) }

func actor(host types.NamespacedName) string { return "BareMetalHost " + host.String() }

// domainsOf returns what of a host may be lost as a whole.
func domainsOf(host *metal3.BareMetalHost) []breaker.Domain {
	out := []breaker.Domain{{Kind: "host namespace", Name: host.Namespace}}
	if rack := host.Labels[v1alpha1.LabelRack]; rack != "" {
		out = append(out, breaker.Domain{Kind: "rack", Name: rack})
	}
	return out
}
