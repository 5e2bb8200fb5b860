package lifecycle

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Claim is a host whose consumerRef names a Machine, seen without that Machine's own plan.
type Claim struct {
	Now time.Time
	// Host is the host; its Consumer is not read.
	Host Host
	// MachineUID is the uid that the consumerRef names.
	MachineUID types.UID
	// NamesakeUID is the uid of the Machine that has the name in the consumerRef. It is empty when there is none, and equal to MachineUID when the
	// Machine exists.
	NamesakeUID types.UID
	// Release is the value of the annotation ingot.dev/release.
	Release string
	// LastTenant is namespace/name of the TenantCluster that the host was claimed for, where there is no HostRecord to say it. MachineName is in the
	// consumerRef.
	LastTenant, MachineName string
	// LastTenantCluster identifies the cluster of LastTenant; empty where it is not known.
	LastTenantCluster types.UID
	// HasSecret is true when a claim Secret exists.
	HasSecret bool
	// SameServer says which other host is the same server, and by what evidence; empty: none is.
	SameServer string
}

// OrphanActionKind names what is done with a host because of its claim.
type OrphanActionKind string

// The actions on the hosts of Machines that are gone.
const (
	// LeaveClaim does nothing.
	LeaveClaim OrphanActionKind = ""
	// WriteClaimRecord writes the spec of the HostRecord.
	WriteClaimRecord OrphanActionKind = "WriteClaimRecord"
	// AwaitOneHost writes nothing: the release waits until no other host is this server.
	AwaitOneHost OrphanActionKind = "AwaitOneHost"
	// PowerOffOrphan requests a host without a HostRecord to power off.
	PowerOffOrphan OrphanActionKind = "PowerOffOrphan"
	// DeprovisionOrphan removes the image and spec.online, so that the host is powered off and erased.
	DeprovisionOrphan OrphanActionKind = "DeprovisionOrphan"
	// DeleteOrphanSecret deletes the claim Secret.
	DeleteOrphanSecret OrphanActionKind = "DeleteOrphanSecret"
	// FreeOrphan removes the consumerRef, and the annotation ingot.dev/release.
	FreeOrphan OrphanActionKind = "FreeOrphan"
)

// OrphanAction is at most one write.
type OrphanAction struct {
	Kind OrphanActionKind
	// RemainingNode is for FreeOrphan: the Node that may be left, where there is no HostRecord to name it.
	RemainingNode *v1alpha1.ReleasedNode
	// Message is for AwaitOneHost.
	Message string
	// Record is what WriteClaimRecord writes.
	Record v1alpha1.HostRecordSpec
}

// PlanOrphan decides about a host by its claim. A claim that arrived after its Machine was deleted is freed, because nothing was begun for it.
// Any other claim of a Machine that is gone is reported, and the host is left as it is: what runs there may be a node that a tenant
// uses. Without it: the management cluster is restored from a backup that gives every Machine a new uid, all hosts seem to belong to
// nobody, and the whole fleet is erased under its tenants. The annotation ingot.dev/release has the host released in the order of a Machine's own
// release: the power-off and the erase, then the claim Secret and the HostRecord, and the consumerRef last. While another host is this server it waits
// before the first of them. Without it: a baremetal-operator serves both hosts, and the server is powered off and cleaned under the node that
// the Machine of the other host runs.
func PlanOrphan(c Claim) OrphanAction {
	switch {
	case c.MachineUID != "" && c.NamesakeUID == c.MachineUID:
		return c.withdrawReport()
	case c.HasSecret && c.isReturned():
		return OrphanAction{Kind: DeleteOrphanSecret}
	case c.isUnused():
		return OrphanAction{Kind: FreeOrphan, RemainingNode: c.releasedNode()}
	case c.isDeprovisionDue():
		return c.deprovision()
	case c.isReleased() && c.isReturnable():
		return OrphanAction{Kind: WriteClaimRecord, Record: v1alpha1.HostRecordSpec{RemainingNodes: c.remainingNodes()}}
	}
	return c.report()
}

// isReleased reports whether the annotation names the Machine that is gone. It names the uid, because a Machine of the same name may exist.
func (c Claim) isReleased() bool { return c.Release == v1alpha1.ReleaseValue(c.MachineUID) }

// isDeprovisionDue reports whether a release is asked for, and the server is not given up yet.
func (c Claim) isDeprovisionDue() bool {
	return c.isReleased() && (c.Host.ImageURL != "" || c.Host.Online)
}

// isReturned reports whether nothing is left to be done to the server before the claim can be removed.
func (c Claim) isReturned() bool { return c.isUnused() || c.isReleased() && c.isReturnable() }

// deprovision gives the server up, once no other host is this server and what runs on it is off.
func (c Claim) deprovision() OrphanAction {
	switch {
	case c.SameServer != "":
		return c.awaitOneHost()
	case c.mustBeOff():
		return c.powerOff()
	}
	return OrphanAction{Kind: DeprovisionOrphan}
}

// mustBeOff reports whether the image of a host without a HostRecord runs, or may run, so that its power-off is confirmed before the image is removed.
// A host with a HostRecord is powered off by its own controller first. In every other state its operator has powered the server off already.
func (c Claim) mustBeOff() bool {
	h := &c.Host
	isInstalled := h.State == metal3.StateProvisioned || h.State == metal3.StateExternallyProvisioned
	return h.Record == nil && h.ImageURL != "" && isInstalled && (h.Online || h.PoweredOn || !h.isPowerCurrent())
}

// powerOff requests the power-off, and then waits until it is confirmed. While a person's reboot is under way, only the first half of the request is
// written: see RequestPowerOff.
func (c Claim) powerOff() OrphanAction {
	if h := c.Host; h.Online || !h.PowerOffRequested && !h.RebootRequested {
		return OrphanAction{Kind: PowerOffOrphan}
	}
	return OrphanAction{}
}

// remainingNodes returns the Nodes that the HostRecord names and the one of the Machine that is gone: nobody has asked its tenant's cluster to
// delete it.
func (c Claim) remainingNodes() []v1alpha1.ReleasedNode {
	if c.Host.Record == nil {
		return nil
	}
	spec := c.Host.Record.Spec
	if spec.Machine == nil || spec.Tenant == "" {
		return spec.RemainingNodes
	}
	return v1alpha1.WithRemainingNode(spec.RemainingNodes, v1alpha1.ReleasedNode{
		Tenant: spec.Tenant, ClusterUID: spec.TenantClusterUID, Name: spec.Machine.Name, MachineUID: spec.Machine.UID, Since: metav1.NewMicroTime(c.Now),
	})
}

// releasedNode returns the Node of a Machine that is gone whose release is complete, for a host without a HostRecord. Where the Machine requested no
// installation, the last tenant is that of an earlier one.
func (c Claim) releasedNode() *v1alpha1.ReleasedNode {
	if c.Host.Record != nil || c.Host.Installation == nil || !c.isReleased() || c.LastTenant == "" {
		return nil
	}
	return &v1alpha1.ReleasedNode{Tenant: c.LastTenant, ClusterUID: c.LastTenantCluster, Name: c.MachineName, MachineUID: c.MachineUID, Since: metav1.NewMicroTime(c.Now)}
}

// awaitOneHost reports first that the Machine is gone, where there is a HostRecord to say it.
func (c Claim) awaitOneHost() OrphanAction {
	if report := c.report(); report.Kind != LeaveClaim {
		return report
	}
	return OrphanAction{Kind: AwaitOneHost, Message: "nothing is powered off or erased until no other host is this server: " + c.SameServer}
}

// isReturnable reports whether no image is requested of the host and its disks are clean.
func (c Claim) isReturnable() bool {
	return c.Host.ImageURL == "" && (c.Host.State == metal3.StateAvailable || c.Host.State == metal3.StateReady)
}

// isUnused reports whether nothing was begun for the claim, or its release is complete.
func (c Claim) isUnused() bool {
	return c.isReturnable() && (c.Host.Record == nil || c.Host.Record.Spec.Machine == nil)
}

// report writes into the HostRecord that the Machine is gone, and which Machine has its name.
func (c Claim) report() OrphanAction {
	if c.Host.Record == nil {
		return OrphanAction{}
	}
	spec := *c.Host.Record.Spec.DeepCopy()
	gone := v1alpha1.MachineGone{UID: c.MachineUID, OtherUID: c.NamesakeUID, Since: metav1.NewMicroTime(c.Now)}
	if before := spec.MachineGone; before != nil && before.UID == gone.UID {
		if before.OtherUID == gone.OtherUID {
			return OrphanAction{}
		}
		gone.Since = before.Since
	}
	spec.MachineGone = &gone
	return OrphanAction{Kind: WriteClaimRecord, Record: spec}
}

// withdrawReport removes a report about a Machine that is there again, as it is after a restore of the store with the same uids.
func (c Claim) withdrawReport() OrphanAction {
	if c.Host.Record == nil || c.Host.Record.Spec.MachineGone == nil {
		return OrphanAction{}
	}
	spec := *c.Host.Record.Spec.DeepCopy()
	spec.MachineGone = nil
	return OrphanAction{Kind: WriteClaimRecord, Record: spec}
}

// OrphanPlacement returns the placement of a Machine while a host is still claimed by an earlier Machine of its name. It is given no other host.
// Without it: the management cluster is restored with new uids, the Machine claims a second server, and the kubelet there registers as the Node
// that the first server still runs; one Node object then stands for two machines.
func OrphanPlacement(host string) Placement {
	return Placement{Reason: v1alpha1.ReasonHostOrphaned, Message: "host " + host + " is still claimed by an earlier Machine of this name and may run its Node: " +
		"kubectl ingot hosts says how to release it; or delete this Machine and make one of another name, as a NodePool does by itself"}
}
