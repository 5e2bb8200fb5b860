package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Decision is what to do about a Machine now.
type Decision struct {
	// Action is the one side effect to try, before the status is written; nil: none.
	Action *Action
	// Status is the Machine's next status. The verdict and the condition Validated in it are as they were: the validation
	// controller writes those.
	Status v1alpha1.MachineStatus
	// Events to emit after the status was written.
	Events []Event
	// Again: plan again at once, the status has just opened the way to a side effect.
	Again bool
	// Requeue is when to look again although nothing was seen to change; 0: only when something changes.
	Requeue time.Duration
}

// Event is one line in a Machine's history. Its reason is that of a condition.
type Event struct {
	Warning         bool
	Reason, Message string
}

// ActionKind names a side effect.
type ActionKind string

// The side effects of a Machine's life; there are no others.
const (
	// AddFinalizer holds the Machine until its host is back.
	AddFinalizer ActionKind = "AddFinalizer"
	// ClaimHost sets the host's consumerRef to this Machine.
	ClaimHost ActionKind = "ClaimHost"
	// WriteHostRecord sets HostRecord.spec to Action.Record.
	WriteHostRecord ActionKind = "WriteHostRecord"
	// CreateToken makes the bootstrap token. With Action.TokenID it makes the one again that the claim Secret holds.
	CreateToken ActionKind = "CreateToken"
	// RenewToken moves the token's end to Action.Expires.
	RenewToken ActionKind = "RenewToken"
	// DeleteToken deletes the bootstrap token.
	DeleteToken ActionKind = "DeleteToken"
	// WriteClaimSecret renders the node's documents, token included, into the claim Secret.
	WriteClaimSecret ActionKind = "WriteClaimSecret"
	// RequestInstall sets the host's image, user data, network data, meta data and online.
	RequestInstall ActionKind = "RequestInstall"
	// ScrubSecret replaces the claim Secret's user data by one without the token.
	ScrubSecret ActionKind = "ScrubSecret"
	// FurnishNode sets the NodeType's labels and taints on the Node.
	FurnishNode ActionKind = "FurnishNode"
	// Cordon makes the Node unschedulable, and marks it with v1alpha1.AnnotationCordoned.
	Cordon ActionKind = "Cordon"
	// Uncordon takes both back.
	Uncordon ActionKind = "Uncordon"
	// Evict asks for the eviction of every pod of Node.Pods once.
	Evict ActionKind = "Evict"
	// PowerOff sets the host's online to false.
	PowerOff ActionKind = "PowerOff"
	// DeleteNode deletes the Node whose uid is Action.NodeUID.
	DeleteNode ActionKind = "DeleteNode"
	// Deprovision takes image, user data, network data and meta data off the host, and online.
	Deprovision ActionKind = "Deprovision"
	// ClearHostRecord empties HostRecord.spec.
	ClearHostRecord ActionKind = "ClearHostRecord"
	// DeleteClaimSecret deletes the claim Secret.
	DeleteClaimSecret ActionKind = "DeleteClaimSecret"
	// ReturnHost removes the host's consumerRef.
	ReturnHost ActionKind = "ReturnHost"
	// RemoveFinalizer lets the Machine go.
	RemoveFinalizer ActionKind = "RemoveFinalizer"
)

// Action is one side effect. Those on a host are for Facts.Host, under its resource version.
type Action struct {
	Kind ActionKind
	// Record is for WriteHostRecord.
	Record v1alpha1.HostRecordSpec
	// TokenID is for CreateToken (may be empty), RenewToken, DeleteToken and WriteClaimSecret.
	TokenID string
	// Expires is for CreateToken and RenewToken.
	Expires time.Time
	// NodeUID is for FurnishNode, Cordon, Uncordon, Evict and DeleteNode.
	NodeUID types.UID
}
