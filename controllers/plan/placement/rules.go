package placement

import (
	"cmp"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Reason is the result for a host: why it was passed over, or that it was not.
type Reason string

// Reasons, in the order in which they are checked.
const (
	// Chosen means that this host was chosen.
	Chosen Reason = "Chosen"
	// Free means that the host could have been chosen.
	Free Reason = "Free"
	// OtherName means that the Machine names another host.
	OtherName Reason = "OtherName"
	// OtherProvider means that the NodeType's NodeProvider has its hosts in another namespace, or does not exist.
	OtherProvider Reason = "OtherProvider"
	// LabelsDiffer means that the NodeType's hostSelector does not select the host.
	LabelsDiffer Reason = "LabelsDiffer"
	// OtherZone means that the host is not in the NodeType's zone.
	OtherZone Reason = "OtherZone"
	// HardwareDiffers means that the NodeType selects the host, but inspection found other GPUs than the NodeType promises.
	HardwareDiffers Reason = "HardwareDiffers"
	// HardwareInsufficient means that the NodeType selects the host, but inspection found that it lacks what spec.hardware requires.
	HardwareInsufficient Reason = "HardwareInsufficient"
	// Claimed means that the host has another consumerRef.
	Claimed Reason = "Claimed"
	// Deleting means that the BareMetalHost is being deleted.
	Deleting Reason = "Deleting"
	// Paused means that the host has the annotation paused.
	Paused Reason = "Paused"
	// Restored: the host was created again from a backup, and it is not known yet what is on it.
	Restored Reason = "Restored"
	// Detached means that the host has the annotation detached, or its controller reports that.
	Detached Reason = "Detached"
	// SameServer means that another host is the same server.
	SameServer Reason = "SameServer"
	// InError means that the host reports an error.
	InError Reason = "InError"
	// NotAvailable means that the state of the host is not available.
	NotAvailable Reason = "NotAvailable"
	// InUse means that the spec of the host has an image that somebody wrote by hand.
	InUse Reason = "InUse"
	// PoweredOn means that the host is on although nobody has claimed it, or that its power state is not known.
	PoweredOn Reason = "PoweredOn"
	// StaysOn means that the host has disablePowerOff, so that its power-off can never be confirmed.
	StaysOn Reason = "StaysOn"
	// NoRecord means that the host has no HostRecord yet.
	NoRecord Reason = "NoRecord"
	// NotReleased means that the Machine that had the host has not returned it yet.
	NotReleased Reason = "NotReleased"
	// EraseUnfinished means that an erase was requested, is running or has failed.
	EraseUnfinished Reason = "EraseUnfinished"
	// EraseUnsupported means that an erase was requested of a host that a baremetal-operator serves, on which nothing acts.
	EraseUnsupported Reason = "EraseUnsupported"
	// Busy means that the host is being inspected or installed.
	Busy Reason = "Busy"
	// OtherTenant means that the data of another tenant was not erased as the policy requires.
	OtherTenant Reason = "OtherTenant"
	// ClusterUnknown means the same of a tenant of the same name, where nobody knows whether it was the same cluster.
	ClusterUnknown Reason = "ClusterUnknown"
)

// kinds are the reasons in words that follow "it is" and a number of hosts, and that tell nothing about whose a host is.
var kinds = map[Reason]string{
	OtherName: "not the one that spec.hostName pins", OtherProvider: "of another NodeProvider", LabelsDiffer: "without the labels that the NodeType selects",
	OtherZone: "in another zone", HardwareDiffers: "of another hardware class", HardwareInsufficient: "without hardware that the NodeType requires", Claimed: "taken", Deleting: "being deleted", Paused: "paused",
	Detached: "detached", SameServer: "registered twice", InError: "in error", NotAvailable: "not ready to be claimed", InUse: "used by hand",
	PoweredOn: "not known to be off", StaysOn: "never powered off (spec.disablePowerOff)", NoRecord: "not observed yet", NotReleased: "still being given back", EraseUnfinished: "waiting for an erase",
	EraseUnsupported: "with a request to erase it that its baremetal-operator does not know",
	Busy:             "at work", OtherTenant: "not erased since another tenant",
	ClusterUnknown: "not erased since a tenant of that name whose cluster is not known",
}

// Kind returns the reason in a few words that follow "it is" and a number of hosts: taken, in error.
func (r Reason) Kind() string { return cmp.Or(kinds[r], string(r)) }

// rule checks one thing that prevents a claim. The Reason of its result is empty when it does not prevent it.
type rule func(Request, HostFacts) Evaluation

// rules are all rules in their order. The first one that prevents the claim is reported.
var rules = slices.Concat([]rule{checkName, checkNodeType}, hostRules)

// hostRules are the rules about the host alone, whatever the Machine asks for.
var hostRules = []rule{
	checkClaim, checkDeletion, checkRestored, checkPaused, checkDetached, checkSameServer, checkError, checkState, checkImage, checkPower, checkRecord,
	checkRelease, checkErase, checkAttempt, checkLastTenant,
}

// evaluate returns the result of the first rule that prevents the claim. Its Reason is Free when there is none.
func evaluate(request Request, facts HostFacts) Evaluation {
	return evaluateBy(rules, request, facts)
}

// anyOtherTenant is the name of no tenant: whoever had the host last was another one.
const anyOtherTenant = "*"

// CheckFree returns Free, or why a host cannot be claimed by the Machines of every tenant, whatever their NodeType. It has no Name. The host may
// have the data of a tenant whose own Machines can claim it: the Reason is OtherTenant then.
func CheckFree(host HostFacts, provider v1alpha1.NodeProviderSpec) Evaluation {
	return evaluateBy(hostRules, Request{Tenant: anyOtherTenant, Provider: provider}, host)
}

func evaluateBy(rules []rule, request Request, facts HostFacts) Evaluation {
	for _, r := range rules {
		if result := r(request, facts); result.Reason != "" {
			return result
		}
	}
	return Evaluation{Reason: Free, Message: "is free"}
}

func rejectIf(applies bool, reason Reason, format string, args ...any) Evaluation {
	if !applies {
		return Evaluation{}
	}
	return Evaluation{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func checkName(r Request, f HostFacts) Evaluation {
	return rejectIf(r.HostName != "" && f.Host.Name != r.HostName, OtherName, "is not the host that spec.hostName pins")
}

// checkNodeType requires that the host fits the NodeType. Without it: a host whose labels promise eight GPUs and that has seven is drained,
// installed and judged, fails its verdict, and the next Machine claims it again.
func checkNodeType(r Request, f HostFacts) Evaluation {
	fit := checkFit(f, r.NodeType, r.Provider, r.selector)
	return rejectIf(fit.Reason != Fitting, fit.Reason, "%s", fit.Message)
}

func checkClaim(_ Request, f HostFacts) Evaluation {
	ref := f.Host.Spec.ConsumerRef
	if ref == nil {
		return Evaluation{}
	}
	return rejectIf(true, Claimed, "is claimed by %s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

func checkDeletion(_ Request, f HostFacts) Evaluation {
	return rejectIf(f.Host.DeletionTimestamp != nil, Deleting, "is being deleted")
}

// checkRestored requires that the host's own controller has looked at a host from a backup. Without it: the backup says that the host is free
// and clean, and its server runs a node that is younger than the backup.
func checkRestored(_ Request, f HostFacts) Evaluation {
	return rejectIf(v1alpha1.IsRestored(f.Host), Restored, "was created again from a backup, and is not known yet")
}

func checkPaused(_ Request, f HostFacts) Evaluation {
	_, isSet := f.Host.Annotations[metal3.PausedAnnotation]
	return rejectIf(isSet, Paused, "is paused by the annotation %s", metal3.PausedAnnotation)
}

func checkDetached(_ Request, f HostFacts) Evaluation {
	_, isSet := f.Host.Annotations[metal3.DetachedAnnotation]
	return rejectIf(isSet || f.Host.Status.OperationalStatus == metal3.OperationalStatusDetached, Detached,
		"is detached by the annotation %s", metal3.DetachedAnnotation)
}

// checkSameServer requires that no other host is the same server. Hosts of a metal3 provider report no such error by themselves.
func checkSameServer(_ Request, f HostFacts) Evaluation {
	return rejectIf(f.SameServer != "", SameServer, "is the same server as another host: %s", f.SameServer)
}

func isInError(host *metal3.BareMetalHost) bool {
	return host.Status.OperationalStatus == metal3.OperationalStatusError || host.Status.ErrorType != ""
}

// checkError accepts a host of a metal3 provider whose installation has failed and was undone. Its baremetal-operator clears that error with the next
// installation, and not before.
func checkError(r Request, f HostFacts) Evaluation {
	s := f.Host.Status
	if !hasRecords(r) && s.ErrorType == metal3.ProvisioningError && s.Provisioning.State == metal3.StateAvailable && s.Provisioning.Image.URL == "" && f.Host.Spec.Image == nil {
		return Evaluation{}
	}
	return rejectIf(isInError(f.Host), InError, "is in error: %s", input.Line(cmp.Or(f.Host.Status.ErrorMessage, string(f.Host.Status.ErrorType)), maxQuoted))
}

func checkState(_ Request, f HostFacts) Evaluation {
	state := f.Host.Status.Provisioning.State
	return rejectIf(state != metal3.StateAvailable && state != metal3.StateReady, NotAvailable, "is %s, not available", cmp.Or(string(state), "not registered yet"))
}

func checkImage(_ Request, f HostFacts) Evaluation {
	if f.Host.Spec.ExternallyProvisioned {
		return rejectIf(true, InUse, "has spec.externallyProvisioned: something else installed what runs there")
	}
	return rejectIf(f.Host.Spec.Image != nil || f.Host.Spec.CustomDeploy != nil, InUse, "has an image in its spec, written by hand: remove spec.image")
}

// checkPower uses the power state of the record where there is one, because that distinguishes unknown from off. Without it: a host whose BMC
// does not answer counts as off and is claimed. It still runs the node of the tenant before it, or cannot be installed at all.
//
// The power of a metal3 provider's host says nothing: its baremetal-operator powers on what is available with spec.online, and installs it as it is. A
// host that it never powers off is passed over.
func checkPower(r Request, f HostFacts) Evaluation {
	if !hasRecords(r) {
		return rejectIf(f.Host.Spec.DisablePowerOff, StaysOn, "has spec.disablePowerOff, and a Machine's server must be powered off before its disk is written again: remove that, or leave the host to others")
	}
	if f.Record != nil && f.Record.Status.Power != nil && !f.Host.Status.PoweredOn {
		state := f.Record.Status.Power.State
		return rejectIf(state != string(hardware.PowerOff), PoweredOn, "is not known to be off: power state %s", state)
	}
	return rejectIf(f.Host.Status.PoweredOn, PoweredOn, "is powered on though no Machine has it: power it off by its BMC, only if nothing else uses it")
}

func checkRecord(r Request, f HostFacts) Evaluation {
	return rejectIf(hasRecords(r) && f.Record == nil, NoRecord, "has no HostRecord yet")
}

// checkRelease requires that the record is cleared, which a Machine does when the host is erased. Without it: the consumerRef is removed by hand
// while a Machine's node runs, another Machine claims the host, and its record still has the tenant and the image of the first one.
func checkRelease(_ Request, f HostFacts) Evaluation {
	if f.Record == nil || f.Record.Spec.Machine == nil {
		return Evaluation{}
	}
	machine := f.Record.Spec.Machine
	return rejectIf(true, NotReleased, "is still being given back by Machine %s/%s", machine.Namespace, machine.Name)
}

// checkErase requires that an erase that was requested has succeeded. Without it: an erase fails half-way, the proof of an earlier one is
// still in the record, and the next tenant reads the half that was not erased. A host of a metal3 provider is not erased by a request, and waits for
// the person who wrote it.
func checkErase(r Request, f HostFacts) Evaluation {
	if mode, isRequested := f.Host.Annotations[v1alpha1.AnnotationErase]; isRequested {
		if !hasRecords(r) {
			return rejectIf(true, EraseUnsupported, "has the annotation %s, on which nothing acts: its baremetal-operator serves it, and cleans a host only when its image is removed. "+
				"Erase its disks by another way if they are to be erased, and then remove the annotation", v1alpha1.AnnotationErase)
		}
		return rejectIf(true, EraseUnfinished, "is to be erased first (%s)", input.Line(mode, maxQuoted))
	}
	if f.Record == nil || f.Record.Status.Wanted == nil || f.Record.Status.Wanted.Operation != string(hardware.OpErase) {
		return Evaluation{}
	}
	attempt := f.Record.Status.Wanted
	if attempt.Outcome == v1alpha1.AttemptFailed {
		return rejectIf(true, EraseUnfinished, "was not erased: %s", input.Line(cmp.Or(attempt.Message, attempt.Reason), maxQuoted))
	}
	return rejectIf(attempt.IsOpen(), EraseUnfinished, "is being erased")
}

func checkAttempt(_ Request, f HostFacts) Evaluation {
	if f.Record == nil || !f.Record.Status.Wanted.IsOpen() {
		return Evaluation{}
	}
	return rejectIf(true, Busy, "is busy: %s", f.Record.Status.Wanted.Operation)
}

func hasRecords(r Request) bool { return r.Provider.Metal3 == nil }
