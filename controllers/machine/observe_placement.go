package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// chooseHost lets the placement choose a host where the Machine could claim one now.
func (r *Reconciler) chooseHost(ctx context.Context, obs *observation) error {
	if obs.nodeType == nil || obs.provider == nil || obs.facts.Machine.Deleting {
		return nil
	}
	orphan, err := r.orphanOf(ctx, obs.machine)
	if err != nil {
		return err
	}
	if orphan != "" {
		obs.facts.Placement = lifecycle.OrphanPlacement(orphan)
		return nil
	}
	hosts, err := r.hosts.read(ctx, r.Client, obs.provider.Spec.HostNamespace, obs.facts.Now)
	if err != nil {
		return err
	}
	d, err := r.chooseServer(ctx, obs.placementRequest(), hosts)
	if err != nil {
		return err
	}
	obs.facts.Placement = lifecycle.Placement{Reason: d.Reason, Message: d.Message}
	if d.Host == "" {
		return nil
	}
	obs.facts.Placement, err = r.placeInQuota(ctx, obs, types.NamespacedName{Namespace: obs.provider.Spec.HostNamespace, Name: d.Host})
	return err
}

// orphanOf returns the name of a host that an earlier Machine of the same name has; empty: there is none.
func (r *Reconciler) orphanOf(ctx context.Context, m *v1alpha1.Machine) (string, error) {
	hosts := &metal3.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.MatchingFields{indexConsumerName: client.ObjectKeyFromObject(m).String()}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the hosts of earlier Machines: %w", err)
	}
	for i := range hosts.Items {
		if h := &hosts.Items[i]; h.Spec.ConsumerRef.UID != m.ClaimUID() {
			return h.Namespace + "/" + h.Name, nil
		}
	}
	return "", nil
}

// chooseServer chooses a host that is a server of its own. Only the hosts whose result depends on it are compared with those of other
// namespaces, and the choice is made again when that finds a second host of a server.
func (r *Reconciler) chooseServer(ctx context.Context, request placement.Request, hosts []placement.HostFacts) (placement.Decision, error) {
	compared := map[string]bool{}
	for {
		d, isFinal := placement.Choose(request, hosts), true
		must := d.ServersToCompare()
		for i := range hosts {
			if name := hosts[i].Host.Name; compared[name] || !must[name] {
				continue
			}
			if err := r.compareServer(ctx, &hosts[i]); err != nil {
				return d, err
			}
			compared[hosts[i].Host.Name] = true
			isFinal = isFinal && hosts[i].SameServer == ""
		}
		if isFinal {
			return d, nil
		}
	}
}

// compareServer sets SameServer of the facts if another host is the same server.
func (r *Reconciler) compareServer(ctx context.Context, facts *placement.HostFacts) error {
	conflicts, err := hostindex.Conflicts(ctx, r.Client, sameserver.HostOf(facts.Host, facts.Record))
	facts.SameServer = sameserver.Describe(conflicts)
	return err
}

// claimProblem returns why the host that the Machine has chosen cannot be claimed now; empty: it can.
func (r *Reconciler) claimProblem(ctx context.Context, obs *observation, consumer lifecycle.Consumer) (string, error) {
	request := obs.placementRequest()
	request.HostName = obs.host.Name
	candidate := placement.HostFacts{Host: obs.host, Record: obs.record}
	if err := r.compareServer(ctx, &candidate); err != nil {
		return "", err
	}
	if d := placement.Choose(request, []placement.HostFacts{candidate}); d.Host == "" {
		return d.Message, nil
	}
	if consumer != lifecycle.ConsumerNone {
		return "", nil
	}
	limits, refusal, err := r.quotaProblem(ctx, r.Client, obs)
	if err != nil || limits == nil {
		return "", err
	}
	return cmp.Or(refusal, "its reservation in the NodeQuota has ended"), nil
}

// placementRequest returns what the placement chooses a host by.
func (obs *observation) placementRequest() placement.Request {
	request := placement.Request{
		MachineUID: obs.machine.ClaimUID(), NodeType: obs.nodeType.Spec,
		HostName: obs.machine.Spec.HostName, Tenant: tenantKey(obs.machine).String(), TenantClusterUID: obs.facts.Tenant.ClusterUID, Provider: obs.provider.Spec,
	}
	if obs.tenant != nil {
		request.TenantUID = obs.tenant.UID
	}
	return request
}

// hostLists remembers the hosts of namespaces for a moment. Without it: a thousand Machines that are ordered together copy a thousand hosts each. The zero value is
// empty.
type hostLists struct {
	mu    sync.Mutex
	lists map[string]hostList
}

// hostList are the hosts of a namespace at a time.
type hostList struct {
	hosts []placement.HostFacts
	at    time.Time
}

// isFresh reports whether the list is used once more: for a millisecond a host. What is listed then costs the same part of the time in every fleet, and few
// Machines choose a host that another has claimed since, which they find out before they claim it.
func (l hostList) isFresh(now time.Time) bool {
	age := now.Sub(l.at)
	return age >= 0 && age < time.Duration(len(l.hosts))*time.Millisecond
}

// read returns the hosts of the namespace with their records, and which of them other Machines are about to claim, from the cache or from memory.
func (l *hostLists) read(ctx context.Context, reader client.Reader, namespace string, now time.Time) ([]placement.HostFacts, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.lists[namespace]; kept.isFresh(now) {
		return slices.Clone(kept.hosts), nil
	}
	hosts, records, err := hostindex.List(ctx, reader, namespace)
	if err != nil {
		return nil, err
	}
	claiming := &v1alpha1.MachineList{}
	if err := reader.List(ctx, claiming, client.MatchingFields{indexClaiming: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Machines that claim hosts: %w", err)
	}
	wanted := make(map[string]bool, len(claiming.Items))
	for i := range claiming.Items {
		wanted[claiming.Items[i].Status.HostRef.Name] = true
	}
	paired := placement.Pair(hosts, records)
	for i := range paired {
		paired[i].IsWanted = wanted[paired[i].Host.Name]
	}
	if l.lists == nil {
		l.lists = map[string]hostList{}
	}
	l.lists[namespace] = hostList{paired, now}
	return slices.Clone(paired), nil
}

// forget has the hosts of the namespace listed again, because one of them may be claimed since.
func (l *hostLists) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lists, namespace)
}
