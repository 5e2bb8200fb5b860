package rollout

import (
	"context"
	"fmt"
	"time"

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
	groups, since, err := r.readGroups(ctx)
	if err != nil {
		return err
	}
	asks := make([]breaker.Ask, len(due))
	for i, name := range due {
		asks[i] = breaker.Ask{Act: breaker.Reinstall, Fault: breaker.Fault{Object: name.String(), At: since[name]}, Groups: groups[name]}
	}
	answers := r.Grants.Ask(actor(obs.rollout.Name), asks)
	if domain := f.ConfirmedDomain(obs.rollout.Annotations[v1alpha1.AnnotationConfirm], answers); domain != nil {
		breaker.Confirm(asks, *domain)
		answers = r.Grants.Ask(actor(obs.rollout.Name), asks)
	}
	f.SetAnswers(due, answers)
	return nil
}

// withdraw asks for nothing any more.
func (r *Reconciler) withdraw(rollout string) { r.Grants.Ask(actor(rollout), nil) }

func actor(rollout string) string { return "Rollout " + rollout }

// readGroups returns for each Machine that has a host what may fail as a whole, and since when it fails where it served and does not now.
func (r *Reconciler) readGroups(ctx context.Context) (map[types.NamespacedName][]*breaker.Group, map[types.NamespacedName]time.Time, error) {
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
	groups, since, all := make(map[types.NamespacedName][]*breaker.Group, len(machines.Items)), map[types.NamespacedName]time.Time{}, map[breaker.Domain]*breaker.Group{}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Status.HostRef == nil {
			continue
		}
		key := client.ObjectKeyFromObject(m)
		at, isFailing := plan.FailingSince(m)
		if isFailing {
			since[key] = at
		}
		for _, d := range domainsOf(m, labels[*m.Status.HostRef]) {
			if all[d] == nil {
				all[d] = &breaker.Group{Domain: d}
			}
			group := all[d]
			group.Servers++
			if isFailing {
				group.Failing = append(group.Failing, breaker.Fault{Object: key.String(), At: at})
			}
			groups[key] = append(groups[key], group)
		}
	}
	return groups, since, nil
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
