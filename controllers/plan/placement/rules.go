package placement

import (
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Reason is why a host was passed over, or not.
type Reason string

// Reasons, in the order in which they are asked.
const (
	// Chosen: this host is the choice.
	Chosen Reason = "Chosen"
	// Free: would do as well.
	Free Reason = "Free"
	// OtherName: the Machine is pinned to another host.
	OtherName Reason = "OtherName"
	// LabelsDiffer: the NodeType's hostSelector does not select it.
	LabelsDiffer Reason = "LabelsDiffer"
	// OtherZone: it is not in the NodeType's zone.
	OtherZone Reason = "OtherZone"
	// Claimed: another has it.
	Claimed Reason = "Claimed"
	// Deleting: the BareMetalHost is being deleted.
	Deleting Reason = "Deleting"
	// Paused: a person keeps its controller away.
	Paused Reason = "Paused"
	// Detached: a person keeps its controller away.
	Detached Reason = "Detached"
	// InError: it reports an error.
	InError Reason = "InError"
	// NotAvailable: its state is another than available.
	NotAvailable Reason = "NotAvailable"
	// InUse: somebody wrote an image into its spec by hand.
	InUse Reason = "InUse"
	// PoweredOn: it runs though nobody has it, or nobody knows that it does not.
	PoweredOn Reason = "PoweredOn"
	// NoRecord: its controller has not recorded it yet.
	NoRecord Reason = "NoRecord"
	// NotReleased: the Machine that had it has not given it back yet.
	NotReleased Reason = "NotReleased"
	// EraseUnfinished: an erase was asked for, runs or failed.
	EraseUnfinished Reason = "EraseUnfinished"
	// Busy: it is being inspected or installed.
	Busy Reason = "Busy"
	// OtherTenant: another tenant's data was not erased as its policy demands.
	OtherTenant Reason = "OtherTenant"
)

// rule is one thing that keeps a host from being claimed; "" when it does not.
type rule func(Request, HostFacts) Considered

// rules in their order: the first that applies is told.
var rules = []rule{
	pinned, selected, zoned, unclaimed, present, unpaused, attached, sound, available, unused, off, recorded, released, erased, idle, sameTenant,
}

// judge returns the first obstacle; an empty Reason: none.
func judge(request Request, facts HostFacts) Considered {
	for _, r := range rules {
		if obstacle := r(request, facts); obstacle.Reason != "" {
			return obstacle
		}
	}
	return Considered{}
}

func when(applies bool, reason Reason, format string, args ...any) Considered {
	if !applies {
		return Considered{}
	}
	return Considered{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func pinned(r Request, f HostFacts) Considered {
	return when(r.HostName != "" && f.Host.Name != r.HostName, OtherName, "is not the host that spec.hostName pins")
}

func selected(r Request, f HostFacts) Considered {
	return when(!selects(r.Selector, f.Host), LabelsDiffer, "lacks the labels of the NodeType's hostSelector")
}

func zoned(r Request, f HostFacts) Considered {
	zone := f.Host.Labels[v1alpha1.LabelZone]
	return when(r.Zone != "" && zone != r.Zone, OtherZone, "is in zone %q, not %q", zone, r.Zone)
}

func unclaimed(_ Request, f HostFacts) Considered {
	ref := f.Host.Spec.ConsumerRef
	if ref == nil {
		return Considered{}
	}
	return when(true, Claimed, "is claimed by %s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

func present(_ Request, f HostFacts) Considered {
	return when(f.Host.DeletionTimestamp != nil, Deleting, "is being deleted")
}

func unpaused(_ Request, f HostFacts) Considered {
	_, is := f.Host.Annotations[metal3.PausedAnnotation]
	return when(is, Paused, "is paused by the annotation %s", metal3.PausedAnnotation)
}

func attached(_ Request, f HostFacts) Considered {
	_, is := f.Host.Annotations[metal3.DetachedAnnotation]
	return when(is || f.Host.Status.OperationalStatus == metal3.OperationalStatusDetached, Detached,
		"is detached by the annotation %s", metal3.DetachedAnnotation)
}

func inError(host *metal3.BareMetalHost) bool {
	return host.Status.OperationalStatus == metal3.OperationalStatusError || host.Status.ErrorType != ""
}

func sound(_ Request, f HostFacts) Considered {
	return when(inError(f.Host), InError, "is in error: %s", v1alpha1.Truncate(or(f.Host.Status.ErrorMessage, string(f.Host.Status.ErrorType)), maxQuoted))
}

func available(_ Request, f HostFacts) Considered {
	state := f.Host.Status.Provisioning.State
	return when(state != metal3.StateAvailable && state != metal3.StateReady, NotAvailable, "is %s, not available", or(string(state), "not registered yet"))
}

func unused(_ Request, f HostFacts) Considered {
	return when(f.Host.Spec.Image != nil || f.Host.Spec.CustomDeploy != nil, InUse, "has an image in its spec, written by hand: remove spec.image")
}

// off trusts the record's power state where there is one: it tells "unknown" from "off".
func off(_ Request, f HostFacts) Considered {
	if f.Record != nil && f.Record.Status.Power != nil && !f.Host.Status.PoweredOn {
		state := f.Record.Status.Power.State
		return when(state != "Off", PoweredOn, "is not known to be off: power state %s", state)
	}
	return when(f.Host.Status.PoweredOn, PoweredOn, "is powered on though nobody has it: power it off")
}

func recorded(r Request, f HostFacts) Considered {
	return when(hasRecords(r) && f.Record == nil, NoRecord, "has no HostRecord yet")
}

func released(_ Request, f HostFacts) Considered {
	if f.Record == nil || f.Record.Spec.Machine == nil {
		return Considered{}
	}
	had := f.Record.Spec.Machine
	return when(true, NotReleased, "is still being given back by Machine %s/%s", had.Namespace, had.Name)
}

func erased(_ Request, f HostFacts) Considered {
	if mode, asked := f.Host.Annotations[v1alpha1.AnnotationErase]; asked {
		return when(true, EraseUnfinished, "is to be erased first (%s)", v1alpha1.Truncate(mode, maxQuoted))
	}
	if f.Record == nil || f.Record.Status.Wanted == nil || f.Record.Status.Wanted.Operation != "Erase" {
		return Considered{}
	}
	attempt := f.Record.Status.Wanted
	if attempt.Outcome == v1alpha1.AttemptFailed {
		return when(true, EraseUnfinished, "was not erased: %s", v1alpha1.Truncate(or(attempt.Message, attempt.Reason), maxQuoted))
	}
	return when(attempt.IsOpen(), EraseUnfinished, "is being erased")
}

func idle(_ Request, f HostFacts) Considered {
	if f.Record == nil || !f.Record.Status.Wanted.IsOpen() {
		return Considered{}
	}
	return when(true, Busy, "is busy: %s", f.Record.Status.Wanted.Operation)
}

// sameTenant: what another tenant left behind must be gone. With a metal3 provider there is no proof of an erase: the
// host is available again only after the baremetal-operator's metadata clean, which may be allowed to be enough.
func sameTenant(r Request, f HostFacts) Considered {
	last, evidence := f.Host.Annotations[AnnotationLastTenant], v1alpha1.EraseNone
	if f.Record != nil {
		last = f.Record.Status.LastTenant
		if f.Record.Status.Erased != nil && f.Record.Status.Installed == nil {
			evidence = f.Record.Status.Erased.Mode
		}
	} else if f.Host.Spec.AutomatedCleaningMode != metal3.CleaningModeDisabled {
		evidence = v1alpha1.EraseMetadata
	}
	if r.Tenant == "" || last == "" || last == r.Tenant || evidence == v1alpha1.EraseFull {
		return Considered{}
	}
	if evidence == v1alpha1.EraseMetadata && r.Provider.Erase != nil && r.Provider.Erase.AllowMetadataBetweenTenants {
		return Considered{}
	}
	return when(true, OtherTenant, "was tenant %s's and had only this erase since: %s; annotate it %s=Full", last, evidence, v1alpha1.AnnotationErase)
}

func hasRecords(r Request) bool { return r.Provider.Metal3 == nil }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
