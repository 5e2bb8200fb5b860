package host

import (
	"cmp"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// isBegunForClaim reports whether a Machine that the host names requested something of it.
func (p planner) isBegunForClaim() bool {
	return p.Host.Claimed && (p.Host.HasImage || p.Spec.Machine != nil)
}

// isHeldAfterRestore reports whether nothing may be done with a host that was created again from a backup. One with a Machine waits until that
// has compared itself with the host, or until a person has it released. One without waits until its server is off. Without it: the backup is
// older than a claim, the host counts as free and clean, and its server, which runs a tenant's node, is erased.
func (p planner) isHeldAfterRestore() bool {
	switch {
	case !p.Host.Restored || p.Host.ExternallyProvisioned:
		return false
	case p.isBegunForClaim():
		return p.Host.Release == "" || p.Host.Release != v1alpha1.ReleaseValue(p.consumerUID())
	default:
		return p.observedPower() != hardware.PowerOff
	}
}

// reportRestored does nothing with the hardware and says what the host waits for. The power is not recorded, because a record without it is one
// whose content was lost.
func (p *planner) reportRestored() {
	p.clearError()
	switch {
	case p.isBegunForClaim():
		p.setError(metal3.ProvisionedRegistrationError, v1alpha1.ReasonHostRestored, "this BareMetalHost was created again from a backup, and its Machine "+p.Host.ConsumerName+
			" has not taken it over: its condition Claimed says why. Nothing is powered off, erased or installed")
		p.reportMachineGone()
	case p.Problem != nil && !p.isSameServer():
		p.setError(metal3.RegistrationError, p.Problem.Reason, p.Problem.Message+"; the host was created again from a backup, and nothing is done with it until its BMC says that the server is off")
	case p.isSameServer():
		p.reportSameServer()
	default:
		p.setError(metal3.RegistrationError, v1alpha1.ReasonHostRestored, fmt.Sprintf("this BareMetalHost was created again from a backup, in which no Machine has it, and its server is %s: "+
			"the node of a Machine that was made after the backup may run there. Look at the server and power it off: then its disks are erased, at once if the annotation %s=%s asks for it or few hosts wait, and it is a host of the pool",
			p.observedPower(), v1alpha1.AnnotationErase, v1alpha1.EraseFull))
	}
	p.d.RequeueAfter, p.d.WaitingFor = p.idleInterval(), "the host to be known after a restore"
}

// restoreRecord writes into the record what is known of a host that was created again from a backup. What a backup says of clean disks was true
// when it was made, so disks without a Machine have unknown content.
func (p *planner) restoreRecord() {
	r := &p.d.Record
	isBlank := r.Power == nil && r.Wanted == nil && r.Installed == nil && r.LastTenant == ""
	switch {
	case p.Host.Restored && !p.isBegunForClaim() && !p.Host.ExternallyProvisioned:
		p.recordUnknownContent()
	case p.Host.Restored && isBlank:
		setLastTenant(r, unknownTenant, "", "")
	case isBlank && p.Host.Installation != nil:
		p.restoreInstallation(p.Host.Installation)
	}
	p.d.Register = p.Host.MustRegister || p.Host.Restored
}

// restoreInstallation writes what the host's annotation says of its Machine's installation into a record whose status was lost.
func (p *planner) restoreInstallation(i *v1alpha1.Installation) {
	r := &p.d.Record
	setLastTenant(r, cmp.Or(i.Tenant, unknownTenant), p.Spec.TenantClusterUID, "")
	r.Disks = i.Disks
	isOfRecord := p.isImageRequested() && i.Machine.UID == p.Spec.Machine.UID && i.Attempt == p.Spec.Attempt
	if isOfRecord && i.State == v1alpha1.InstallationComplete {
		r.Installed = &v1alpha1.HostInstalled{MachineUID: i.Machine.UID, Attempt: i.Attempt, Revision: i.Revision, Checksum: p.Spec.Image.Checksum, RootDisk: i.RootDisk, At: microTime(p.Now)}
	}
}

// consumerUID is the uid in the consumerRef.
func (p planner) consumerUID() types.UID { return types.UID(p.Host.ConsumerUID) }
