package rollout

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// observeGrants asks for the Machines that need a grant, and writes the answers into the facts.
func (r *Reconciler) observeGrants(ctx context.Context, obs observation, f *plan.Facts) error {
	due := f.NeedsGrant()
	if len(due) == 0 {
		r.withdraw(obs.rollout.Name)
		return nil
	}
	domains, sizes, err := r.readDomains(ctx)
	if err != nil {
		return err
	}
	confirmation := plan.Confirmation(&obs.rollout.Status)
	isConfirmed := confirmation != "" && obs.rollout.Annotations[v1alpha1.AnnotationConfirm] == confirmation
	asks := make([]breaker.Ask, len(due))
	for i, name := range due {
		asks[i] = breaker.Ask{Act: breaker.Reinstall, Object: name.String(), Domains: domains[name], IsConfirmed: isConfirmed}
	}
	f.SetAnswers(due, r.Grants.Ask(actor(obs.rollout.Name), asks, sizes))
	return nil
}

// withdraw asks for nothing any more.
func (r *Reconciler) withdraw(rollout string) { r.Grants.Ask(actor(rollout), nil, nil) }

func actor(rollout string) string { return "Rollout " + rollout }

// readDomains returns what may fail as a whole of each Machine that has a host, and how many servers of each such domain there are and fail.
func (r *Reconciler) readDomains(ctx context.Context) (map[types.NamespacedName][]breaker.Domain, map[breaker.Domain]breaker.Size, error) {
	var machines v1alpha1.MachineList
	if err := r.Client.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list Machines: %w", err)
	}
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	labels := make(map[v1alpha1.NamespacedReference]map[string]string, len(hosts.Items))
	for i := range hosts.Items {
		labels[v1alpha1.NamespacedReference{Namespace: hosts.Items[i].Namespace, Name: hosts.Items[i].Name}] = hosts.Items[i].Labels
	}
	of, sizes := make(map[types.NamespacedName][]breaker.Domain, len(machines.Items)), map[breaker.Domain]breaker.Size{}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Status.HostRef == nil {
			continue
		}
		all := domainsOf(m, labels[*m.Status.HostRef])
		of[client.ObjectKeyFromObject(m)] = all
		for _, d := range all {
			size := sizes[d]
			size.Servers++
			if plan.IsFailing(m) {
				size.Failing++
			}
			sizes[d] = size
		}
	}
	return of, sizes, nil
}

// domainsOf returns what of a Machine may fail as a whole.
func domainsOf(m *v1alpha1.Machine, labels map[string]string) []breaker.Domain {
	out := []breaker.Domain{
		{Kind: "TenantCluster", Name: m.Namespace + "/" + m.Spec.TenantClusterRef.Name}, {Kind: "NodeType", Name: m.Spec.NodeTypeRef.Name}, {Kind: "host namespace", Name: m.Status.HostRef.Namespace},
	}
	if rack := labels[v1alpha1.LabelRack]; rack != "" {
		out = append(out, breaker.Domain{Kind: "rack", Name: rack})
	}
	if domain := labels[v1alpha1.LabelNVLinkDomain]; domain != "" {
		out = append(out, breaker.Domain{Kind: "NVLink domain", Name: domain})
	}
	return out
}
