package host

import (
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Decision is what to write and what to do. Record is written first: it is the intent, and BareMetalHost.status can be
// derived from it again. Then the Action, then the annotations, then Status, then the events.
type Decision struct {
	// Status is the BareMetalHost's next status.
	Status Status
	// Record is the HostRecord's next status.
	Record v1alpha1.HostRecordStatus
	// Action is at most one thing to ask of the hardware.
	Action Action
	// DropAnnotations are requests that were served.
	DropAnnotations []Annotation
	// DropFinalizer lets a deleted host go.
	DropFinalizer bool
	// WaitsFor says in words what is awaited until then, for logs.
	WaitsFor string
	// Requeue is when to look again; 0 means that only an event changes anything.
	Requeue time.Duration
	// Events to be published after the writes.
	Events []Event

	// way is the edges that were taken.
	way []*edge
}

// Annotation is a request by annotation.
type Annotation string

// Annotations that a Decision may drop.
const (
	AnnotationReboot  Annotation = "reboot.metal3.io"
	AnnotationInspect Annotation = "inspect.metal3.io"
	AnnotationErase   Annotation = v1alpha1.AnnotationErase
)

// ActionKind is a call to the hardware.
type ActionKind string

// Action kinds.
const (
	ActionNone     ActionKind = ""
	ActionInspect  ActionKind = "Inspect"
	ActionInstall  ActionKind = "Install"
	ActionErase    ActionKind = "Erase"
	ActionCancel   ActionKind = "Cancel"
	ActionSetPower ActionKind = "SetPower"
)

// Action is one call to the hardware.
type Action struct {
	Kind ActionKind
	// Attempt of Inspect, Install, Erase and Cancel.
	Attempt hardware.Attempt
	// Image of an Install.
	Image hardware.Image
	// Erase mode of an Erase.
	Erase hardware.EraseMode
	// Power of a SetPower.
	Power hardware.PowerChange
}

// Event is for people.
type Event struct {
	// Warning, else Normal.
	Warning bool
	// Reason and Action in UpperCamel.
	Reason, Action string
	Message        string
}
