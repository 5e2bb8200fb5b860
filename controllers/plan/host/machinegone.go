package host

import (
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// isMachineGone reports whether the claim of this host, and not of an earlier one, is that of a Machine that is gone.
func (p planner) isMachineGone() bool {
	gone := p.Spec.MachineGone
	return p.Host.Claimed && gone != nil && string(gone.UID) == p.Host.ConsumerUID
}

// decidingErrors are the reasons that later plans and the boot service decide by, so that no other one replaces them. Without the first:
// the next observation does not find the refused login, logs in again, and the BMC locks the account.
var decidingErrors = []string{v1alpha1.ReasonBMCUnauthorized, v1alpha1.ReasonSameServer}

// reportMachineGone reports a claim whose Machine is gone. Another error of the host is added to the message, so that the reason stays the
// same while the host waits for a person.
func (p *planner) reportMachineGone() {
	if !p.isMachineGone() || p.d.RemoveFinalizer {
		return
	}
	message := p.machineGoneMessage()
	switch e := p.d.Record.Error; {
	case e == nil:
		p.setError(metal3.ProvisionedRegistrationError, v1alpha1.ReasonMachineGone, message)
	case e.Reason == v1alpha1.ReasonMachineGone, strings.Contains(e.Message, v1alpha1.ReasonMachineGone+": "):
		// It is the error of the record, kept for the grace period of a BMC that does not answer.
	case slices.Contains(decidingErrors, e.Reason):
		p.setError(p.d.Status.ErrorType, e.Reason, e.Message+secondErrorPrefix+v1alpha1.ReasonMachineGone+": "+message)
	default:
		p.setError(metal3.ProvisionedRegistrationError, v1alpha1.ReasonMachineGone, message+secondErrorPrefix+e.Reason+": "+e.Message)
	}
}

func (p planner) machineGoneMessage() string {
	gone, m := p.Spec.MachineGone, p.Spec.Machine
	machine := "the Machine"
	if m != nil {
		machine = "Machine " + m.Namespace + "/" + m.Name
	}
	message := fmt.Sprintf("%s with uid %s, which has this host, does not exist any more and did not release it", machine, v1alpha1.ReleaseValue(gone.UID))
	if gone.OtherUID != "" {
		message += fmt.Sprintf("; a Machine of that name with uid %s does: it was made anew, or the management cluster was restored with new uids", gone.OtherUID)
	}
	switch {
	case p.Host.Release == v1alpha1.ReleaseValue(gone.UID) && p.isSameServer():
		message += "; its release waits until no other host is this server"
	case p.Host.Release == v1alpha1.ReleaseValue(gone.UID):
		message += "; it is being powered off, erased and freed"
	default:
		message += fmt.Sprintf("; if the server is on, what runs there goes on, and nothing is powered off or erased; to have it powered off, erased and freed, annotate this BareMetalHost with %s=%s, which asks for the verb abandon on that Machine",
			v1alpha1.AnnotationRelease, v1alpha1.ReleaseValue(gone.UID))
	}
	if m != nil && p.Spec.Tenant != "" {
		message += fmt.Sprintf("; Node %s may remain in TenantCluster %s: delete it there with kubectl delete node %s when the server is off", m.Name, p.Spec.Tenant, m.Name)
	}
	return message
}

// reportRemainingNode adds an event to the beginning of an erase before which the tenant's cluster could not be asked to delete the Node.
func (p *planner) reportRemainingNode() {
	n := p.Spec.NodeRemains
	if n == nil {
		return
	}
	message := fmt.Sprintf("the disks are erased while Node %s may remain in TenantCluster %s, which did not answer: delete it there with kubectl delete node %s", n.Name, p.Spec.Tenant, n.Name)
	if n.TokenID != "" {
		message += fmt.Sprintf("; bootstrap token %s may remain too, until it ends by itself: delete Secret bootstrap-token-%s in kube-system", n.TokenID, n.TokenID)
	}
	p.d.Events = append(p.d.Events, event.Warning(v1alpha1.ReasonNodeRemains, string(ActionErase), message))
}
