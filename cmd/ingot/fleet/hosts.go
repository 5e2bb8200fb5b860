package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// HostRow is a host as `ingot hosts -o json` prints it.
type HostRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Use is free, claimed, busy (inspected, erased or prepared), error or, of a host that is none of these, the reason why it cannot be claimed,
	// such as PoweredOn.
	Use   string `json:"use"`
	State string `json:"state"`
	// NotFree says why no Machine can claim a host that is neither claimed nor in error. It continues a sentence that begins with the host's name.
	NotFree string `json:"notFree,omitempty"`
	// Claimed names the Machine that has it, namespace/name, or the kind, namespace and name of another consumer.
	Claimed string `json:"claimed,omitempty"`
	Power   string `json:"power"`
	// Kept says, of a host that is being deleted while a Machine has it, what keeps it or what its baremetal-operator does, and what to do. It continues a sentence that begins with the
	// host's name.
	Kept string `json:"kept,omitempty"`
	// GPUs that inspection found, or that the labels of a host without a HostRecord name.
	GPUs string `json:"gpus,omitempty"`
	// TPM is the beginning of the fingerprint by which its agents prove that they run on it, and since when that is trusted; none: the server has no TPM 2.0.
	TPM string `json:"tpm,omitempty"`
	// NodeTypes that it fits.
	NodeTypes []string `json:"nodeTypes"`
	// Fits is NodeTypes in one line, or the reason why none.
	Fits string `json:"fits"`
	// MissingDisks were in the host and were not found by the agent that looked last. An erase waits for them.
	MissingDisks []string `json:"missingDisks,omitempty"`
	// RemainingNodes may be left in the clusters of earlier tenants: Node of TenantCluster namespace/name.
	RemainingNodes []string `json:"remainingNodes,omitempty"`
	// ForgetNodes is the command that removes RemainingNodes which Ingot does not delete itself, because the host has no HostRecord.
	ForgetNodes string `json:"forgetNodes,omitempty"`
	// IgnoredAnnotations are those of the host that ask Ingot for something and have no effect, because a baremetal-operator serves it.
	IgnoredAnnotations []IgnoredAnnotation `json:"ignoredAnnotations,omitempty"`
	// Error that it reports.
	Error string `json:"error,omitempty"`
	// Release is the command that releases a host whose Machine is gone. It is empty once the release is requested.
	Release string `json:"release,omitempty"`

	// isServed is true where a baremetal-operator serves the host, and isFreeAgain where the error is of an installation that it has undone.
	isServed, isFreeAgain bool
	errorType             metal3.ErrorType
}

// MachineUIDs are the uids of all Machines. nil means that the user may not list them.
type MachineUIDs map[types.UID]bool

// HostRows returns the hosts by namespace and name, each with the NodeTypes that it fits.
func HostRows(hosts []placement.HostFacts, nodeTypes []v1alpha1.NodeType, providers []v1alpha1.NodeProvider, machines MachineUIDs) []HostRow {
	rows := make([]HostRow, 0, len(hosts))
	for _, h := range hosts {
		row := hostRow(h, placement.CompareWithNodeTypes(h, nodeTypes, providers))
		addOrphan(&row, h, machines)
		setUse(&row, placement.CheckFree(h, providerOf(h, providers)))
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b HostRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

func hostRow(h placement.HostFacts, fits []placement.Fit) HostRow {
	b := h.Host
	row := HostRow{
		Namespace: b.Namespace, Name: b.Name, State: cmp.Or(string(b.Status.Provisioning.State), "new"), Power: "Off", NodeTypes: []string{}, Fits: placement.FitSummary(fits),
		isServed: isServed(h), isFreeAgain: hasUndoneError(h), errorType: b.Status.ErrorType,
	}
	if b.Status.PoweredOn {
		row.Power = "On"
	}
	for _, f := range fits {
		if f.IsFitting() {
			row.NodeTypes = append(row.NodeTypes, f.NodeType)
		}
	}
	addClaim(&row, h)
	row.IgnoredAnnotations = ignoredAnnotations(h)
	if b.Status.ErrorType != "" || b.Status.ErrorMessage != "" {
		row.Error = strings.TrimPrefix(string(b.Status.ErrorType)+": "+b.Status.ErrorMessage, ": ")
	}
	if row.Error == "" && h.SameServer != "" {
		// The host of a metal3 provider reports no such error by itself.
		row.Error = v1alpha1.ReasonSameServer + ": " + h.SameServer
	}
	if h.Record == nil {
		row.GPUs = placement.LabelledGPUs(b.Labels)
	}
	row.TPM = tpmText(h)
	if h.Record != nil && h.Record.Status.Inventory != nil {
		row.GPUs = gpuList(h.Record.Status.Inventory)
		for _, disk := range inventory.MissingDisks(&h.Record.Status) {
			row.MissingDisks = append(row.MissingDisks, disk.String())
		}
	}
	addRemainingNodes(&row, h)
	return row
}

// addClaim adds to the row who has the host and, where somebody has deleted it nevertheless, what happens to it.
func addClaim(row *HostRow, h placement.HostFacts) {
	ref := h.Host.Spec.ConsumerRef
	if ref == nil {
		return
	}
	row.Claimed = ref.Namespace + "/" + ref.Name
	if !v1alpha1.IsMachineRef(ref) {
		row.Claimed = strings.TrimSpace(ref.Kind + " " + row.Claimed)
		return
	}
	switch {
	case h.Host.DeletionTimestamp == nil:
	case row.isServed:
		row.Kept = servedKept(ref.Namespace, ref.Name)
	default:
		row.Kept = v1alpha1.KeptForMachine(ref.Namespace, ref.Name)
	}
}

// addRemainingNodes adds the Nodes that may remain: those that the HostRecord names, or the host itself where it has none.
func addRemainingNodes(row *HostRow, h placement.HostFacts) {
	nodes := v1alpha1.RemainingNodesOf(h.Host)
	if len(nodes) > 0 {
		row.ForgetNodes = fmt.Sprintf("kubectl annotate baremetalhost -n %s %s %s-", row.Namespace, row.Name, v1alpha1.AnnotationRemainingNodes)
	}
	if h.Record != nil {
		nodes = append(nodes, h.Record.Spec.RemainingNodes...)
	}
	for _, n := range nodes {
		row.RemainingNodes = append(row.RemainingNodes, "Node "+n.Name+" of TenantCluster "+n.Tenant)
	}
}

// addOrphan adds to the row of a host whose Machine is gone that this is so, and how the host is released.
func addOrphan(row *HostRow, h placement.HostFacts, machines MachineUIDs) {
	ref := h.Host.Spec.ConsumerRef
	if !v1alpha1.IsMachineRef(ref) {
		return
	}
	reported := h.Record != nil && h.Record.Spec.MachineGone != nil && h.Record.Spec.MachineGone.UID == ref.UID
	if machines[ref.UID] || machines == nil && !reported {
		return
	}
	value := v1alpha1.ReleaseValue(ref.UID)
	row.Kept = ""
	if row.Error == "" {
		// The host of a metal3 provider reports no such error by itself.
		row.Error = fmt.Sprintf("%s: Machine %s/%s with uid %s does not exist any more and did not release the host", v1alpha1.ReasonMachineGone, ref.Namespace, ref.Name, value)
	}
	if h.SameServer != "" {
		row.Error += "; its Machine is gone, and a release waits until no other host is this server"
	}
	if h.Host.Annotations[v1alpha1.AnnotationRelease] != value {
		row.Release = fmt.Sprintf("kubectl annotate baremetalhost -n %s %s --overwrite %s=%s", row.Namespace, row.Name, v1alpha1.AnnotationRelease, value)
	}
}

// providerOf returns the NodeProvider that has its hosts in the host's namespace, or the zero value.
func providerOf(h placement.HostFacts, providers []v1alpha1.NodeProvider) v1alpha1.NodeProviderSpec {
	for _, p := range providers {
		if p.Spec.HostNamespace == h.Host.Namespace {
			return p.Spec
		}
	}
	return v1alpha1.NodeProviderSpec{}
}

// setUse sets the word for the use of a host, and why it is not free by the rules that Machines choose their hosts by. Without them: a host that
// is on, paused or not erased is called free, while a Machine that needs it says NoHostAvailable.
func setUse(row *HostRow, result placement.Evaluation) {
	switch {
	case row.Error != "" && !row.isFreeAgain || result.Reason == placement.InError:
		row.Use = "error"
		return
	case row.Claimed != "":
		row.Use = "claimed"
		return
	case result.Reason == placement.Free:
		row.Use = "free"
		return
	case result.Reason == placement.NotAvailable || result.Reason == placement.Busy:
		row.Use = "busy"
	default:
		row.Use = string(result.Reason)
	}
	row.NotFree = result.Message
	if result.Reason == placement.EraseUnsupported {
		// The message says it already.
		row.IgnoredAnnotations = slices.DeleteFunc(row.IgnoredAnnotations, func(a IgnoredAnnotation) bool { return a.Name == v1alpha1.AnnotationErase })
	}
	if result.Reason == placement.OtherTenant {
		row.NotFree = "is free for its last tenant only: " + row.NotFree
	}
}

func gpuList(found *v1alpha1.HostInventory) string {
	if !found.IsGPUCountKnown() {
		return "unknown"
	}
	var parts []string
	for _, g := range found.GPUs {
		parts = append(parts, fmt.Sprintf("%d x %s", g.Count, cmp.Or(g.Model, g.VendorID+":"+g.DeviceID)))
	}
	return strings.Join(parts, ", ")
}

// withoutRelease returns the error of a host without its clause about the annotation that releases it: the command says the same.
func withoutRelease(text string) string {
	clauses := strings.Split(text, "; ")
	return strings.Join(slices.DeleteFunc(clauses, func(clause string) bool { return strings.Contains(clause, v1alpha1.AnnotationRelease+"=") }), "; ")
}

// hostLine returns the cells of a line, with what is about the TPM before the last one where the table is wide.
func hostLine(isWide bool, tpm string, cells ...string) []string {
	if !isWide {
		return cells
	}
	return slices.Insert(cells, len(cells)-1, tpm)
}

// hostTable returns the lines of the hosts. Wide ones have what is known of the TPM, too.
func hostTable(rows []HostRow, isWide bool) [][]string {
	out := [][]string{hostLine(isWide, "TPM", "NAMESPACE", "NAME", "USE", "STATE", "POWER", "MACHINE", "GPUS", "NODETYPES, OR WHAT IS WRONG")}
	for _, r := range rows {
		last := r.Fits
		if r.NotFree != "" && r.Use != "busy" {
			last = r.NotFree
		}
		if len(r.MissingDisks) > 0 {
			last += "; missing, and an erase waits for it: " + strings.Join(r.MissingDisks, ", ")
		}
		switch {
		case r.isFreeAgain:
			last += "; an installation before failed and is undone: " + r.Error
		case r.Error != "":
			last = r.Error
		}
		if r.Kept != "" {
			last = strings.TrimPrefix(r.Error+"; ", "; ") + r.Kept
		}
		if r.Release != "" {
			last = withoutRelease(last) + "; to have it powered off, erased and freed, which asks for the verb abandon on that Machine: " + r.Release
		}
		switch {
		case r.ForgetNodes != "":
			last += "; may remain: " + strings.Join(r.RemainingNodes, ", ") + "; nobody looks for it: when it is not there any more, clear this by " + r.ForgetNodes
		case len(r.RemainingNodes) > 0:
			last += "; may remain, and is deleted when the tenant's cluster can be used: " + strings.Join(r.RemainingNodes, ", ")
		}
		last += ignoredClauses(r)
		out = append(out, hostLine(isWide, orDash(r.TPM), r.Namespace, r.Name, r.Use, r.State, r.Power, orDash(r.Claimed), orDash(r.GPUs), last))
	}
	return out
}
