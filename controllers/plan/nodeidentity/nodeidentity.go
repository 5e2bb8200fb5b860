package nodeidentity

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/identity"
)

// Claim is what is known of the Node that a Machine's installation registers.
type Claim struct {
	// MachineUID is the uid that the Machine claimed its host under, Attempt its installation.
	MachineUID types.UID
	Attempt    int64
	// NodeUID is that of the Node that this attempt is bound to; empty: to none yet.
	NodeUID types.UID
	// SystemUUID is what the agent read from DMI; empty: no agent has told.
	SystemUUID string
	// ByCluster says that the tenant's cluster sets providerIDs itself.
	ByCluster bool
}

// ClaimOf returns the claim of the Machine with that uid, or that claimed its host under that uid, and that status.
func ClaimOf(uid types.UID, s v1alpha1.MachineStatus) Claim {
	c := Claim{MachineUID: uid, Attempt: s.Attempt, SystemUUID: s.SystemUUID, ByCluster: s.ProviderID == v1alpha1.ProviderIDByCluster}
	if s.NodeRef != nil {
		c.NodeUID = s.NodeRef.UID
	}
	return c
}

// ProviderID is the providerID that kubelet registers with; empty: kubelet has none.
func (c Claim) ProviderID() string {
	if c.ByCluster {
		return ""
	}
	return v1alpha1.ProviderID(c.MachineUID, c.Attempt)
}

// Node is what a Node shows.
type Node struct {
	UID                    types.UID
	ProviderID, SystemUUID string
	// Installation is the value of v1alpha1.LabelInstallation; empty: kubelet was not given it.
	Installation string
}

// Owner says whose a Node is.
type Owner string

// Owners of a Node.
const (
	// ThisAttempt means that the present installation of the Machine registered it.
	ThisAttempt Owner = "ThisAttempt"
	// EarlierAttempt means that an earlier installation of the Machine registered it or, where the cluster sets providerIDs, anything earlier on its server.
	EarlierAttempt Owner = "EarlierAttempt"
	// Another means that it is another machine's.
	Another Owner = "Another"
	// SameServer means that the Machine's server registered it, and that it cannot be told in which installation.
	SameServer Owner = "SameServer"
	// Unknown means that it cannot be told. It is treated as another's: nothing is done to it.
	Unknown Owner = "Unknown"
)

// IsMachines reports whether it is a Node of the Machine's server. One that is must not outlive the server's release.
func (o Owner) IsMachines() bool { return o == ThisAttempt || o == EarlierAttempt || o == SameServer }

// Finding is whose a Node is, and why it is not the present installation's.
type Finding struct {
	Owner Owner
	// Message says what was expected and seen. It is empty for ThisAttempt.
	Message string
}

// Of tells whose the Node of the Machine's name is.
func Of(c Claim, n Node) Finding {
	switch {
	case strings.HasPrefix(n.ProviderID, v1alpha1.ProviderIDPrefix):
		return ofProviderID(c, n)
	case c.NodeUID != "" && c.NodeUID == n.UID:
		return Finding{Owner: ThisAttempt}
	case !c.ByCluster:
		return Finding{Another, fmt.Sprintf("its providerID is \"%s\", and this Machine's would be %q. If the tenant's cluster sets providerIDs itself, spec.join.providerID of the TenantCluster must say %s",
			input.Line(n.ProviderID, maxPrinted), c.ProviderID(), v1alpha1.ProviderIDByCluster)}
	}
	return ofServer(c, n)
}

// ofProviderID decides by a providerID of Ingot's.
func ofProviderID(c Claim, n Node) Finding {
	expected := v1alpha1.ProviderID(c.MachineUID, c.Attempt)
	message := fmt.Sprintf("its providerID is \"%s\", and this Machine's would be %q", input.Line(n.ProviderID, maxPrinted), expected)
	switch {
	case n.ProviderID == expected:
		return Finding{Owner: ThisAttempt}
	case IsOf(n.ProviderID, c.MachineUID):
		return Finding{EarlierAttempt, message}
	}
	return Finding{Another, message}
}

// ofServer decides by the system UUID and the boot.
func ofServer(c Claim, n Node) Finding {
	expected, seen := identity.SystemUUID(c.SystemUUID), identity.SystemUUID(n.SystemUUID)
	switch {
	case expected == "":
		return Finding{Unknown, fmt.Sprintf("the tenant's cluster sets providerIDs itself, and the system UUID of the server, by which its Node would be known, is not known: Ingot's agent read %q from DMI. Have the host inspected", c.SystemUUID)}
	case seen == "":
		return Finding{Unknown, fmt.Sprintf("kubelet has reported the system UUID \"%s\", which identifies no server, and the agent read %s from DMI", input.Line(n.SystemUUID, maxPrinted), c.SystemUUID)}
	case expected != seen:
		return Finding{Another, fmt.Sprintf("its system UUID is %s, and the agent read %s from DMI on the server of this Machine: another machine has that name", input.Line(n.SystemUUID, maxPrinted), c.SystemUUID)}
	case n.Installation == "":
		return Finding{SameServer, fmt.Sprintf("it has no label %s, so that it cannot be told from one of an earlier installation of the same server: a join script must give kubelet the labels in INGOT_NODE_LABELS. Delete the Node once that server is off", v1alpha1.LabelInstallation)}
	case n.Installation != v1alpha1.InstallationLabel(c.MachineUID, c.Attempt):
		return Finding{EarlierAttempt, fmt.Sprintf("its label %s is \"%s\", and that of this installation is %q", v1alpha1.LabelInstallation, input.Line(n.Installation, maxPrinted), v1alpha1.InstallationLabel(c.MachineUID, c.Attempt))}
	}
	return Finding{Owner: ThisAttempt}
}

// NodeOf returns what the Node shows.
func NodeOf(node *corev1.Node) Node {
	return Node{UID: node.UID, ProviderID: node.Spec.ProviderID, SystemUUID: node.Status.NodeInfo.SystemUUID, Installation: node.Labels[v1alpha1.LabelInstallation]}
}

// IsOfMachine reports whether an installation of the Machine of that uid registered the Node.
func IsOfMachine(n Node, machine types.UID) bool {
	return IsOf(n.ProviderID, machine) || !strings.HasPrefix(n.ProviderID, v1alpha1.ProviderIDPrefix) && strings.HasPrefix(n.Installation, string(machine)+".")
}

// IsOf reports whether an installation of the Machine of that uid registered with the providerID.
func IsOf(providerID string, machine types.UID) bool {
	return strings.HasPrefix(providerID, v1alpha1.ProviderIDPrefix+string(machine)+"/")
}

// AttemptOf returns the attempt in a providerID of the Machine of that uid, and 0 for any other providerID.
func AttemptOf(providerID string, machine types.UID) int64 {
	text, isOwn := strings.CutPrefix(providerID, v1alpha1.ProviderIDPrefix+string(machine)+"/")
	if !isOwn {
		return 0
	}
	attempt, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return attempt
}

// maxPrinted is how much of a text of the tenant's is shown, in bytes.
const maxPrinted = 128
