package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// Candidate is a host that a Machine without one could claim, or why it cannot.
type Candidate struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Reason is Free, Chosen or why the host is passed over, such as Claimed.
	Reason placement.Reason `json:"reason"`
	// Message continues a sentence that begins with the name of the host.
	Message string `json:"message"`
}

// evidence is what the caller may read about a Machine beside the Machine.
type evidence struct {
	// host is the Machine's; nil: it has none, or the caller may not read it.
	host *placement.HostFacts
	// candidates are the hosts of a Machine that has none.
	candidates []Candidate
	// provider is the kind of the host's NodeProvider; the zero value: the Machine has no host, or the caller may not read NodeProviders.
	provider providerkind.Kind
	rollout  *v1alpha1.Rollout
	// unread says what the caller may not read.
	unread []string
}

// gather reads with the caller's rights what explains a Machine. What the caller may not read is named, and the rest is read.
func gather(ctx context.Context, k client.Client, m *v1alpha1.Machine) (evidence, error) {
	var e evidence
	for _, read := range []func(context.Context, client.Client, *v1alpha1.Machine, *evidence) error{readMachineHost, readCandidates, readRollout} {
		if err := read(ctx, k, m, &e); apierrors.IsForbidden(err) {
			e.unread = append(e.unread, err.Error())
		} else if err != nil {
			return e, err
		}
	}
	return e, nil
}

// readMachineHost reads the host that the Machine has.
func readMachineHost(ctx context.Context, k client.Client, m *v1alpha1.Machine, e *evidence) error {
	ref := m.Status.HostRef
	if ref == nil {
		return nil
	}
	facts, err := listHosts(ctx, k, ref.Namespace)
	if i := slices.IndexFunc(facts, func(f placement.HostFacts) bool { return f.Host.Name == ref.Name }); i >= 0 {
		e.host = &facts[i]
	}
	if err != nil {
		return err
	}
	if provider := providerOfNamespace(ctx, k, ref.Namespace); provider != nil {
		e.provider = providerkind.Of(*provider)
	}
	return nil
}

// providerOfNamespace returns the NodeProvider that has its hosts in the namespace, or nil where there is none or the caller may not read it: what is said
// of a host is then less exact, and nothing else.
func providerOfNamespace(ctx context.Context, k client.Client, namespace string) *v1alpha1.NodeProviderSpec {
	var list v1alpha1.NodeProviderList
	if err := k.List(ctx, &list); err != nil {
		return nil
	}
	for i := range list.Items {
		if spec := &list.Items[i].Spec; spec.HostNamespace == namespace {
			return spec
		}
	}
	return nil
}

// readCandidates compares the hosts with what a Machine without one asks for, by the rules that its controller chooses by. The Machine's own condition
// only counts them, because those read it who may not read hosts.
func readCandidates(ctx context.Context, k client.Client, m *v1alpha1.Machine, e *evidence) error {
	if m.Status.HostRef != nil || m.DeletionTimestamp != nil {
		return nil
	}
	nodeType, provider, tenant := &v1alpha1.NodeType{}, &v1alpha1.NodeProvider{}, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
	if err := k.Get(ctx, client.ObjectKey{Name: m.Spec.NodeTypeRef.Name}, nodeType); err != nil {
		return orUnknown("NodeType", m.Spec.NodeTypeRef.Name, err)
	}
	if err := k.Get(ctx, client.ObjectKey{Name: nodeType.Spec.ProviderRef.Name}, provider); err != nil {
		return orUnknown("NodeProvider", nodeType.Spec.ProviderRef.Name, err)
	}
	hosts, err := listHosts(ctx, k, provider.Spec.HostNamespace)
	if err != nil {
		return err
	}
	cluster := &v1alpha1.TenantCluster{}
	if err := k.Get(ctx, tenant, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read TenantCluster %s: %w", tenant, err)
	}
	e.candidates = candidates(placement.Request{
		MachineUID: m.UID, NodeType: nodeType.Spec, HostName: m.Spec.HostName, Tenant: tenant.String(), TenantClusterUID: cluster.Status.ClusterUID,
		TenantUID: cluster.UID, Provider: provider.Spec,
	}, hosts)
	return nil
}

// candidates returns the hosts that the NodeType selects before the others.
func candidates(request placement.Request, hosts []placement.HostFacts) []Candidate {
	var out []Candidate
	for _, result := range placement.Choose(request, hosts).Evaluations {
		out = append(out, Candidate{Namespace: request.Provider.HostNamespace, Name: result.Name, Reason: result.Reason, Message: result.Message})
	}
	isOther := func(c Candidate) int {
		if slices.Contains([]placement.Reason{placement.OtherName, placement.LabelsDiffer, placement.OtherZone}, c.Reason) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b Candidate) int { return cmp.Compare(isOther(a), isOther(b)) })
	return out
}

// orUnknown hides that an object does not exist, because the Machine's condition says so.
func orUnknown(kind, name string, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("read %s %s: %w", kind, name, err)
}

// readRollout reads the Rollout that the Machine is a target of or, where its turn has not come, that is to move it.
func readRollout(ctx context.Context, k client.Client, m *v1alpha1.Machine, e *evidence) error {
	label := m.Labels[v1alpha1.LabelRollout]
	if label == "" {
		var list v1alpha1.RolloutList
		if err := k.List(ctx, &list); err != nil {
			return fmt.Errorf("list Rollouts: %w", err)
		}
		e.rollout = rolloutAhead(m, list.Items)
		return nil
	}
	r := &v1alpha1.Rollout{}
	if err := k.Get(ctx, client.ObjectKey{Name: label}, r); err != nil {
		return orUnknown("Rollout", label, err)
	}
	e.rollout = r
	return nil
}

// maxCandidates is how many hosts the text names. The JSON has all of them.
const maxCandidates = 20

// writeCandidates writes a line for each host that was compared, and one for each thing that could not be read.
func (d Diagnosis) writeCandidates(b *strings.Builder) {
	for i, c := range d.Candidates {
		if i == maxCandidates {
			fmt.Fprintf(b, "  candidate  and %d more: ingot why -o json names them\n", len(d.Candidates)-i)
			break
		}
		fmt.Fprintf(b, "  candidate  %s/%s %s\n", c.Namespace, c.Name, c.Message)
	}
	for _, text := range d.Unread {
		fmt.Fprintf(b, "  not read   %s\n", text)
	}
}
