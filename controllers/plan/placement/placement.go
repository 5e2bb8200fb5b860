package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// AnnotationLastTenant on a BareMetalHost of a metal3 provider, which has no HostRecord, is namespace/name of the
// TenantCluster that had its disks last. The machine controller writes it with the claim.
const AnnotationLastTenant = "ingot.dev/last-tenant"

// Request is what a Machine asks for.
type Request struct {
	// MachineUID also spreads the choice.
	MachineUID types.UID
	// Selector is the NodeType's hostSelector. One that selects nothing or cannot be read fits no host.
	Selector metav1.LabelSelector
	// Zone is the NodeType's; empty: any.
	Zone string
	// HostName pins one host, which must fit like any other; empty: any.
	HostName string
	// Tenant is namespace/name of the TenantCluster; empty asks for nobody in particular, as counting does.
	Tenant string
	// Provider says whether hosts have HostRecords and which erase is enough between tenants.
	Provider v1alpha1.NodeProviderSpec
}

// HostFacts is one host of the provider's namespace.
type HostFacts struct {
	// Host is the BareMetalHost.
	Host *metal3.BareMetalHost
	// Record is its HostRecord; nil: there is none.
	Record *v1alpha1.HostRecord
}

// Considered is one host that was looked at.
type Considered struct {
	// Name of the BareMetalHost.
	Name string
	// Reason is Chosen, Free (would do as well), or why the host was passed over.
	Reason Reason
	// Message completes "server-1 ...".
	Message string
}

// Decision is the choice and its grounds.
type Decision struct {
	// Host is the name of the chosen BareMetalHost; empty: none.
	Host string
	// Considered is every host, by name.
	Considered []Considered
	// Reason is a reason of Machine's Claimed condition when there is no host: NoHostAvailable or HostNotFound.
	Reason string
	// Message is one sentence for people: the hosts that were passed over, and why.
	Message string
}

// Pair puts each host together with its record, which has the same name. All are of one namespace.
func Pair(hosts []metal3.BareMetalHost, records []v1alpha1.HostRecord) []HostFacts {
	recorded := make(map[string]*v1alpha1.HostRecord, len(records))
	for i := range records {
		recorded[records[i].Name] = &records[i]
	}
	facts := make([]HostFacts, len(hosts))
	for i := range hosts {
		facts[i] = HostFacts{Host: &hosts[i], Record: recorded[hosts[i].Name]}
	}
	return facts
}

// Choose picks a host. A host that the Machine has already is chosen before any other, whatever its state.
func Choose(request Request, hosts []HostFacts) Decision {
	var decision Decision
	var best uint64
	for _, facts := range byName(hosts) {
		name := facts.Host.Name
		if ref := facts.Host.Spec.ConsumerRef; ref != nil && ref.UID == request.MachineUID && request.MachineUID != "" {
			return chosen(Considered{Name: name, Reason: Chosen, Message: "is this Machine's already"}, decision.Considered)
		}
		obstacle := judge(request, facts)
		if obstacle.Reason == "" {
			obstacle = Considered{Reason: Free, Message: "is free"}
			if s := score(request.MachineUID, name); decision.Host == "" || s < best {
				decision.Host, best = name, s
			}
		}
		obstacle.Name = name
		decision.Considered = append(decision.Considered, obstacle)
	}
	return explain(request, decision)
}

// Count counts the hosts of a NodeType by the rules of Choose. Tenant, HostName and MachineUID of the request do not
// count.
func Count(request Request, hosts []HostFacts) v1alpha1.HostCounts {
	request.Tenant, request.HostName, request.MachineUID = "", "", ""
	var counts v1alpha1.HostCounts
	for _, facts := range hosts {
		reason := judge(request, facts).Reason
		if reason == LabelsDiffer || reason == OtherZone {
			continue
		}
		counts.Matching++
		if reason == "" {
			counts.Available++
		}
		if facts.Host.Spec.ConsumerRef != nil {
			counts.Claimed++
		}
		if inError(facts.Host) {
			counts.Error++
		}
	}
	return counts
}

// byName makes the order of the input irrelevant.
func byName(hosts []HostFacts) []HostFacts {
	sorted := slices.Clone(hosts)
	slices.SortFunc(sorted, func(a, b HostFacts) int { return cmp.Compare(a.Host.Name, b.Host.Name) })
	return sorted
}

// score is what a Machine thinks of a host: the lowest wins.
func score(machine types.UID, host string) uint64 {
	sum := sha256.Sum256([]byte(string(machine) + "/" + host))
	return binary.BigEndian.Uint64(sum[:])
}

func selects(selector metav1.LabelSelector, host *metal3.BareMetalHost) bool {
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && !compiled.Empty() && compiled.Matches(labels.Set(host.Labels))
}
