package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// AnnotationLastTenant on a BareMetalHost of a metal3 provider, which has no HostRecord, is namespace/name of the
// TenantCluster that used its disks last. The machine controller writes it with the first request to install, because a Machine that goes before
// that has used nothing.
const AnnotationLastTenant = "ingot.dev/last-tenant"

// AnnotationLastTenantClusterUID is the clusterUID of that TenantCluster. It is absent while that is not known.
const AnnotationLastTenantClusterUID = "ingot.dev/last-tenant-cluster-uid"

// AnnotationLastTenantUID is the uid of that TenantCluster. It is absent where an earlier version wrote the tenant.
const AnnotationLastTenantUID = "ingot.dev/last-tenant-uid"

// UnknownCluster is no cluster's uid. As the value of AnnotationLastTenantClusterUID it is the same as none.
const UnknownCluster = "unknown"

// Request is what a Machine requires of its host.
type Request struct {
	// MachineUID is the uid of the Machine. The choice between free hosts differs from uid to uid.
	MachineUID types.UID
	// NodeType is the spec of the NodeType. Its hostSelector, zone and gpu say which hosts fit.
	NodeType v1alpha1.NodeTypeSpec
	// HostName names the only host to choose, which must fit like any other. When it is empty, any host fits.
	HostName string
	// Tenant is namespace/name of the TenantCluster. It is empty when no tenant is meant, as for Count.
	Tenant string
	// TenantClusterUID identifies the cluster of the TenantCluster. It is empty while that is not known.
	TenantClusterUID types.UID
	// TenantUID is the uid of the object TenantCluster. It is empty where that is not known.
	TenantUID types.UID
	// Provider is the NodeProvider. It says whether hosts have HostRecords and which erase is enough between tenants.
	Provider v1alpha1.NodeProviderSpec

	// selector is the hostSelector of NodeType, compiled for all hosts.
	selector labels.Requirements
}

// HostFacts is one host of the provider's namespace.
type HostFacts struct {
	// Host is the BareMetalHost.
	Host *metal3.BareMetalHost
	// Record is its HostRecord. It is nil when there is none.
	Record *v1alpha1.HostRecord
	// SameServer names another host that is the same server, as sameserver.Describe does. It is empty when none is known.
	SameServer string
	// IsWanted is true when another Machine has chosen it and is about to claim it. It is chosen where no other host is free: that Machine may give up.
	IsWanted bool
}

// Evaluation is the result for one host.
type Evaluation struct {
	// Name is the name of the BareMetalHost.
	Name string
	// Reason is Chosen, Free, or why the host was passed over.
	Reason Reason
	// Message continues a sentence that begins with the name of the host. It may name other tenants and quote a BMC, so it is only for those who
	// may read hosts.
	Message string
}

// Decision is the chosen host and the reasons.
type Decision struct {
	// Host is the name of the chosen BareMetalHost. It is empty when none was chosen.
	Host string
	// Evaluations are the results for all hosts, sorted by name.
	Evaluations []Evaluation
	// Reason is a reason of the Machine's condition Claimed when no host was chosen: NoHostAvailable or HostNotFound.
	Reason string
	// Message is one sentence for those who may not read hosts: the chosen host, or how many were passed over and why.
	Message string
}

// ServersToCompare returns the names of the hosts whose result depends on whether another host is the same server: it was chosen or, where none was,
// it is passed over because it is on. Without it: two hosts are one server, the node of a Machine runs on it by the first of them, and the
// message about the second one makes somebody power it off.
func (d Decision) ServersToCompare() map[string]bool {
	names := map[string]bool{}
	for _, e := range d.Evaluations {
		if e.Reason == Chosen || d.Host == "" && e.Reason == PoweredOn {
			names[e.Name] = true
		}
	}
	return names
}

// Pair returns each host together with its record, which has the same name and namespace.
func Pair(hosts []metal3.BareMetalHost, records []v1alpha1.HostRecord) []HostFacts {
	recorded := make(map[types.NamespacedName]*v1alpha1.HostRecord, len(records))
	for i := range records {
		recorded[types.NamespacedName{Namespace: records[i].Namespace, Name: records[i].Name}] = &records[i]
	}
	facts := make([]HostFacts, len(hosts))
	for i := range hosts {
		facts[i] = HostFacts{Host: &hosts[i], Record: recorded[types.NamespacedName{Namespace: hosts[i].Namespace, Name: hosts[i].Name}]}
	}
	return facts
}

// Choose chooses a host. A host that the Machine has claimed already is chosen before any other, whatever its state: the Machine was
// interrupted after the claim, and a second claim would leave the first host without a Machine.
func Choose(request Request, hosts []HostFacts) Decision {
	var decision Decision
	var best uint64
	var isBestWanted bool
	request.selector = compileSelector(request.NodeType.HostSelector)
	for _, facts := range sortedByName(hosts) {
		name := facts.Host.Name
		if ref := facts.Host.Spec.ConsumerRef; ref != nil && ref.UID == request.MachineUID && request.MachineUID != "" {
			return decisionForClaimed(Evaluation{Name: name, Reason: Chosen, Message: "is this Machine's already"}, decision.Evaluations)
		}
		result := evaluate(request, facts)
		if result.Reason == Free {
			s, isBetter := score(request.MachineUID, name), isBestWanted && !facts.IsWanted
			if decision.Host == "" || isBetter || isBestWanted == facts.IsWanted && s < best {
				decision.Host, best, isBestWanted = name, s, facts.IsWanted
			}
		}
		result.Name = name
		decision.Evaluations = append(decision.Evaluations, result)
	}
	return withMessage(request, decision)
}

// Count counts the hosts of a NodeType by the rules of Choose. It ignores Tenant, HostName and MachineUID of the request.
func Count(request Request, hosts []HostFacts) v1alpha1.HostCounts {
	request.Tenant, request.HostName, request.MachineUID = "", "", ""
	request.selector = compileSelector(request.NodeType.HostSelector)
	var counts v1alpha1.HostCounts
	for _, facts := range hosts {
		reason := evaluate(request, facts).Reason
		if !isMatching(reason) {
			continue
		}
		counts.Matching++
		if reason == Free {
			counts.Available++
		}
		if facts.Host.Spec.ConsumerRef != nil {
			counts.Claimed++
		}
		if isInError(facts.Host) || facts.SameServer != "" {
			counts.Error++
		}
	}
	return counts
}

// CountFree counts the hosts that Machines of the request's tenant could claim now, by the rules of Choose. It ignores HostName and MachineUID.
func CountFree(request Request, hosts []HostFacts) int {
	request.HostName, request.MachineUID = "", ""
	request.selector = compileSelector(request.NodeType.HostSelector)
	n := 0
	for _, facts := range hosts {
		if evaluate(request, facts).Reason == Free {
			n++
		}
	}
	return n
}

// isMatching reports whether the hostSelector and the zone select a host with that result.
func isMatching(reason Reason) bool {
	return reason != OtherProvider && reason != LabelsDiffer && reason != OtherZone
}

// sortedByName returns the hosts in an order that does not depend on the input.
func sortedByName(hosts []HostFacts) []HostFacts {
	sorted := slices.Clone(hosts)
	slices.SortFunc(sorted, func(a, b HostFacts) int { return cmp.Compare(a.Host.Name, b.Host.Name) })
	return sorted
}

// score returns the score of a host for a Machine. The host with the lowest score is chosen (rendezvous hashing).
func score(machine types.UID, host string) uint64 {
	sum := sha256.Sum256([]byte(string(machine) + "/" + host))
	return binary.BigEndian.Uint64(sum[:])
}

// maxQuoted is how many bytes of a text from outside a message quotes: 80, and the mark that Truncate adds to a longer text.
const maxQuoted = 80 + len("...")

// decisionForClaimed returns the Decision for a host that the Machine has claimed already.
func decisionForClaimed(host Evaluation, before []Evaluation) Decision {
	return Decision{Host: host.Name, Evaluations: append(before, host), Message: host.Name + " " + host.Message}
}

// withMessage returns the Decision with the message, and with the reason when no host was chosen.
func withMessage(request Request, d Decision) Decision {
	if d.Host != "" {
		free := 0
		for i := range d.Evaluations {
			if d.Evaluations[i].Name == d.Host {
				d.Evaluations[i].Reason, d.Evaluations[i].Message = Chosen, "is free and chosen"
			}
			if d.Evaluations[i].Reason == Free || d.Evaluations[i].Reason == Chosen {
				free++
			}
		}
		d.Message = fmt.Sprintf("%s, of %d free hosts", d.Host, free)
		return d
	}
	d.Reason, d.Message = v1alpha1.ReasonNoHostAvailable, refusalMessage(request, d.Evaluations)
	if request.HostName != "" && !slices.ContainsFunc(d.Evaluations, func(e Evaluation) bool { return e.Name == request.HostName }) {
		d.Reason = v1alpha1.ReasonHostNotFound
		d.Message = fmt.Sprintf("spec.hostName pins %s, and no BareMetalHost in namespace %s has that name", request.HostName, request.Provider.HostNamespace)
	}
	return d
}

// refusalMessage counts the hosts by the kind of reason for which they were passed over. It is written into the Machine, which those read who may not
// read hosts: it has no host's name but the one that the Machine itself names, and no text of an Evaluation.
func refusalMessage(request Request, evaluations []Evaluation) string {
	if len(evaluations) == 0 {
		return fmt.Sprintf("there is no BareMetalHost in namespace %s", request.Provider.HostNamespace)
	}
	counts := map[string]int{}
	for _, e := range evaluations {
		if e.Name == request.HostName {
			return fmt.Sprintf("host %s, which spec.hostName pins, cannot be claimed: it is %s", e.Name, e.Reason.Kind())
		}
		counts[e.Reason.Kind()]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return fmt.Sprintf("no host can be claimed; %s: %s", hostCount(len(evaluations)), strings.Join(kinds, ", "))
}

func hostCount(n int) string {
	if n == 1 {
		return "1 host"
	}
	return fmt.Sprintf("%d hosts", n)
}
