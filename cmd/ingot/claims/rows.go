package claims

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
)

// Row is what a claim has or asks for of one class, on one node, as `ingot claims -o json` prints it.
type Row struct {
	// Tenant whose Entitlement has the class or the namespace; empty: none has.
	Tenant    string `json:"tenant,omitempty"`
	Namespace string `json:"namespace"`
	Claim     string `json:"claim"`
	// Virtual is the virtual cluster that the claim was synced from, and its claim there; nil: it is of no virtual cluster.
	Virtual *Virtual `json:"virtual,omitempty"`
	Class   string   `json:"class"`
	Devices int      `json:"devices"`
	// IsWaiting: the devices are asked for, and not allocated.
	IsWaiting bool `json:"waiting"`
	// Reason why they are not: Unallocated, or Unused; empty: they are, or which pods ask for the claim is not known.
	Reason  v1alpha1.WaitReason `json:"reason,omitempty"`
	Node    string              `json:"node,omitempty"`
	Machine string              `json:"machine,omitempty"`
	Host    string              `json:"host,omitempty"`
	Rack    string              `json:"rack,omitempty"`
	// Since is when the claim was allocated or, where that is not known and while it waits, created.
	Since time.Time `json:"since"`
	// Holder is the pod, or the number of pods, that the claim is reserved for.
	Holder string `json:"holder,omitempty"`
}

// Virtual is a claim in a virtual cluster.
type Virtual struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace"`
	Claim     string `json:"claim"`
}

// The syncer of vCluster writes them on every object that it makes in the cluster below: docs of vCluster, "Sync to host", and its package translate.
const (
	syncedName      = "vcluster.loft.sh/object-name"
	syncedNamespace = "vcluster.loft.sh/object-namespace"
	syncedBy        = "vcluster.loft.sh/managed-by"
)

// virtualOf returns the claim of a virtual cluster that this one was synced from; nil: none. A claim that kube-controller-manager made from a template of a pod
// that was synced is made here, and is no claim there.
func virtualOf(c *resourcev1.ResourceClaim) *Virtual {
	if c.Annotations[syncedName] == "" {
		return nil
	}
	return &Virtual{Cluster: c.Labels[syncedBy], Namespace: c.Annotations[syncedNamespace], Claim: c.Annotations[syncedName]}
}

// Site is what the management cluster knows of a shared cluster.
type Site struct {
	// tenants are by DeviceClass, and owners by namespace; labelled are those of tenants that have their namespaces by label.
	tenants, owners map[string]string
	labelled        []string
	machines        map[string]*v1alpha1.Machine
	racks           map[v1alpha1.NamespacedReference]string
}

// NewSite returns what is known of a TenantCluster.
func NewSite(cluster string, entitlements []v1alpha1.Entitlement, machines []v1alpha1.Machine, hosts []metal3.BareMetalHost) Site {
	out := Site{tenants: map[string]string{}, owners: map[string]string{}, machines: map[string]*v1alpha1.Machine{}, racks: map[v1alpha1.NamespacedReference]string{}}
	for i := range entitlements {
		e := &entitlements[i]
		if e.Spec.TenantClusterRef.Name != cluster {
			continue
		}
		if e.Spec.Namespaces.Selector != nil {
			out.labelled = append(out.labelled, e.Spec.Tenant)
		}
		for _, namespace := range e.Spec.Namespaces.Names {
			out.owners[namespace] = e.Spec.Tenant
		}
		for _, class := range e.Status.Classes {
			if class.DeviceClass != "" {
				out.tenants[class.DeviceClass] = e.Spec.Tenant
			}
		}
	}
	for i := range machines {
		if m := &machines[i]; m.Spec.TenantClusterRef.Name == cluster && m.Status.NodeRef != nil {
			out.machines[m.Status.NodeRef.Name] = m
		}
	}
	for i := range hosts {
		out.racks[v1alpha1.NamespacedReference{Namespace: hosts[i].Namespace, Name: hosts[i].Name}] = hosts[i].Labels[v1alpha1.LabelRack]
	}
	return out
}

// Rows returns the rows of claims: first those that wait, the longest waiting before the others, then those that no pod asks for, then by tenant and name.
// wanted are the claims that pods without a node ask for, as NAMESPACE/NAME; nil: that is not known.
func Rows(claims []resourcev1.ResourceClaim, wanted map[string]bool, site Site) []Row {
	rows := []Row{}
	for i := range claims {
		claim := &claims[i]
		for class, usage := range entitlement.Count(claims[i : i+1]) {
			row := Row{
				Tenant: site.tenantOf(class, claim.Namespace), Namespace: claim.Namespace, Claim: claim.Name, Virtual: virtualOf(claim), Class: class, Devices: usage.Allocated + usage.Pending,
				IsWaiting: claim.Status.Allocation == nil, Reason: waitReason(claim, wanted), Since: entitlement.Since(claim).UTC(), Node: entitlement.NodeOf(claim), Holder: holder(claim),
			}
			rows = append(rows, site.locate(row))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(compareWaiting(a, b), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Class, b.Class))
	})
	return rows
}

// waitReason returns why a claim has no devices; empty: it has some, or that is not known.
func waitReason(claim *resourcev1.ResourceClaim, wanted map[string]bool) v1alpha1.WaitReason {
	switch {
	case claim.Status.Allocation != nil || wanted == nil:
		return ""
	case wanted[claim.Namespace+"/"+claim.Name]:
		return v1alpha1.WaitUnallocated
	}
	return v1alpha1.WaitUnused
}

// tenantOf returns the tenant of a claim. A claim runs on after its class was taken away: then the namespace tells. Where that is a tenant's by label, which
// nobody but the shared cluster knows, the name of the class tells, TENANT-CLASS, if it can be of one tenant only.
func (s Site) tenantOf(class, namespace string) string {
	if tenant := cmp.Or(s.tenants[class], s.owners[namespace]); tenant != "" {
		return tenant
	}
	fitting := slices.DeleteFunc(slices.Clone(s.labelled), func(tenant string) bool { return !strings.HasPrefix(class, tenant+"-") })
	if len(fitting) != 1 {
		return ""
	}
	return fitting[0]
}

func compareWaiting(a, b Row) int {
	rank := cmp.Compare(waitRank(a), waitRank(b))
	if rank == 0 && a.IsWaiting {
		return a.Since.Compare(b.Since)
	}
	return rank
}

// waitRank orders rows by whether they wait: a claim that no pod asks for lacks nothing.
func waitRank(r Row) int {
	switch {
	case !r.IsWaiting:
		return 2
	case r.Reason == v1alpha1.WaitUnused:
		return 1
	}
	return 0
}

// locate adds the Machine of the node, its host and its rack.
func (s Site) locate(row Row) Row {
	m := s.machines[row.Node]
	if m == nil || row.Node == "" {
		return row
	}
	row.Machine = m.Namespace + "/" + m.Name
	if ref := m.Status.HostRef; ref != nil {
		row.Host, row.Rack = ref.Name, s.racks[*ref]
	}
	return row
}

func holder(claim *resourcev1.ResourceClaim) string {
	var names []string
	for _, r := range claim.Status.ReservedFor {
		names = append(names, r.Name)
	}
	return strings.Join(names, ",")
}
