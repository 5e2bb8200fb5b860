package fleet

import (
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// isServed reports whether a baremetal-operator serves the host. It has no HostRecord then, and the annotations that ask Ingot's host controller for
// something have no effect.
func isServed(h placement.HostFacts) bool {
	return h.Record == nil && slices.Contains(h.Host.Finalizers, metal3.BareMetalHostFinalizer)
}

// IgnoredAnnotation is an annotation of a host that has no effect.
type IgnoredAnnotation struct {
	Name string `json:"name"`
	// Message says why, and what to do instead.
	Message string `json:"message"`
}

// requestAnnotations are those that ask Ingot's host controller for something, with what a baremetal-operator does instead.
var requestAnnotations = []struct{ name, instead string }{
	{v1alpha1.AnnotationErase, "cleans a host only when its image is removed: erase its disks by another way if they are to be erased"},
	{v1alpha1.AnnotationRetry, "tries again by itself; an installation that it has given up begins again with another image"},
	{v1alpha1.AnnotationDiskGone, "waits for no disk that is missing"},
	{v1alpha1.AnnotationRootDisk, "chooses the root disk by spec.rootDeviceHints: correct that instead"},
}

// ignoredAnnotations returns the annotations of a host that ask Ingot's host controller for something, where a baremetal-operator serves it.
func ignoredAnnotations(h placement.HostFacts) []IgnoredAnnotation {
	var ignored []IgnoredAnnotation
	for _, a := range requestAnnotations {
		if _, isSet := h.Host.Annotations[a.name]; isSet && isServed(h) {
			ignored = append(ignored, IgnoredAnnotation{Name: a.name, Message: "annotation " + a.name + " has no effect: a baremetal-operator serves this host, and " + a.instead +
				". To remove it: " + fmt.Sprintf("kubectl annotate bmh -n %s %s %s-", h.Host.Namespace, h.Host.Name, a.name)})
		}
	}
	return ignored
}

// ignoredClauses returns the end of a host's line about its annotations without effect.
func ignoredClauses(r HostRow) string {
	var text strings.Builder
	for _, a := range r.IgnoredAnnotations {
		text.WriteString("; " + a.Message)
	}
	return text.String()
}

// servedKept says of a host that is being deleted while a Machine has it what its baremetal-operator does, and the way back. It continues a sentence
// that begins with the host's name.
func servedKept(namespace, name string) string {
	return "is being deleted, and its baremetal-operator powers the server off and removes the image, whatever runs there: kubectl delete machine -n " + namespace + " " + name +
		", and create the BareMetalHost again when it is gone"
}

// hasUndoneError reports whether the error of a host is that of an installation which its baremetal-operator has undone. The host is free, and the error
// stays until its power is changed.
func hasUndoneError(h placement.HostFacts) bool {
	s := h.Host.Status
	return isServed(h) && h.Host.Spec.Image == nil && s.ErrorType == metal3.ProvisioningError && s.Provisioning.State == metal3.StateAvailable && s.Provisioning.Image.URL == ""
}

// describeHost is the command that shows what the baremetal-operator says of a host.
const describeHost = "kubectl describe bmh -n NAMESPACE HOST"

// servedErrorSteps are what a person can do about an error of a host that a baremetal-operator serves.
var servedErrorSteps = map[metal3.ErrorType]string{
	metal3.RegistrationError:            "look at HOST's BMC: its network, its address in spec.bmc, and the Secret with its credentials; its baremetal-operator tries again by itself",
	metal3.ProvisionedRegistrationError: "look at HOST's BMC: its network, its address in spec.bmc, and the Secret with its credentials; its baremetal-operator tries again by itself, and the server runs on",
	metal3.PowerManagementError:         "look at HOST's BMC: it does not change the power of the server; its baremetal-operator tries again by itself",
	metal3.ProvisioningError: "see what Ironic says (" + describeHost + "), and correct the server, or name a corrected OSImage in the NodeType: later releases of the baremetal-operator than v0.12 try five times by default and then leave " +
		"the host available with this error, until another image or no image is asked for; v0.12 tries for ever",
	metal3.InspectionError:  "correct what the inspection reports (" + describeHost + "); the baremetal-operator tries again by itself",
	metal3.PreparationError: "correct spec.raid or spec.firmware of HOST, or its HostFirmwareSettings; the baremetal-operator tries again by itself",
	metal3.ServicingError:   "correct the HostFirmwareSettings or HostFirmwareComponents of HOST; the baremetal-operator tries again by itself",
	metal3.DetachError:      "see the log of the baremetal-operator: it could not remove HOST's node from Ironic",
}

// servedReasonSteps take the place of nextSteps for a host that a baremetal-operator serves.
var servedReasonSteps = map[string]string{
	v1alpha1.ReasonProvisioningTimedOut: "see at what its baremetal-operator is (" + describeHost + "), the node of HOST in Ironic and the log of its ramdisk, or the console of HOST",
	v1alpha1.ReasonSameServer: "two hosts are one server, and what runs there keeps running: find the host that is wrong, not the one that has this Machine (ingot hosts names both), annotate it with " + metal3.DetachedAnnotation +
		", wait until its status.operationalStatus is detached, and delete it: its baremetal-operator powers off what is deleted otherwise",
	v1alpha1.ReasonEraseFailed: "the host stays out of the pool until its baremetal-operator has cleaned it, which it tries again by itself: " + describeHost +
		" says what failed. Look at the node of HOST in Ironic, and at its disks",
}

// servedStep is what a person can do where a baremetal-operator serves the Machine's host; empty: as for every other host.
func (d Diagnosis) servedStep() string {
	if d.Host == nil || !d.Host.isServed {
		return ""
	}
	switch d.Machine.Reason {
	case v1alpha1.ReasonBMCUnreachable, v1alpha1.ReasonBMCConflict, v1alpha1.ReasonHostError, string(hardware.ReasonInstallerFailed):
		return d.fillIn(servedErrorSteps[d.Host.errorType])
	}
	return d.fillIn(servedReasonSteps[d.Machine.Reason])
}

// ironicSteps take the place of nextSteps for a host of an ironic NodeProvider, whose agent is Ironic's.
var ironicSteps = map[string]string{
	v1alpha1.ReasonProvisioningTimedOut: "look at the node of HOST in Ironic (" + showNode + ") and at the console of HOST; the step that it stopped at is in the condition's message",
}

// showNode is the command that shows the node of a host in Ironic, whatever its name there is: it is reserved by the UID of the host.
const showNode = "openstack baremetal node show --instance $(kubectl get bmh -n NAMESPACE HOST -o jsonpath={.metadata.uid})"

// ironicStep is what a person can do where Ironic installs the Machine's host; empty: as for every other host.
func (d Diagnosis) ironicStep() string {
	if d.provider.Name != providerkind.Ironic.Name {
		return ""
	}
	return d.fillIn(ironicSteps[d.Machine.Reason])
}

// setProvider sets the kind of the host's NodeProvider, on which the next step depends.
func (d *Diagnosis) setProvider(kind providerkind.Kind) {
	d.provider = kind
	d.Next = d.nextStep()
}

// logElsewhere says where the log of the last installation of a host is when it is not Ingot's agent that installs it; empty: it is.
func logElsewhere(host types.NamespacedName, kind providerkind.Kind) string {
	switch kind.Name {
	case providerkind.Metal3.Name:
		return fmt.Sprintf("there is no log of host %s: its baremetal-operator has Ironic install it. kubectl describe bmh -n %s %s says what happened, and Ironic keeps the log of its ramdisk", host, host.Namespace, host.Name)
	case providerkind.Ironic.Name:
		node := strings.NewReplacer("NAMESPACE", host.Namespace, "HOST", host.Name).Replace(showNode)
		return fmt.Sprintf("there is no log of host %s: Ironic installs it, and keeps the log of its ramdisk. Its node: %s", host, node)
	}
	return ""
}

// servedHostStep is what a person can do about the error that a baremetal-operator reports of its host; empty: it serves another host, or reports none.
func (d Diagnosis) servedHostStep() string {
	switch {
	case !d.Host.isServed:
		return ""
	case d.Host.isFreeAgain:
		return "nothing: the installation that failed is undone, and the next one on this host clears the error. If that fails too: " + d.fillIn(describeHost)
	}
	return d.fillIn(servedErrorSteps[d.Host.errorType])
}
