package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InstallationState is how far the work for a Machine on its host is.
type InstallationState string

// States of an Installation.
const (
	// InstallationRequested says that the image was requested, and that what is on the disk is not known.
	InstallationRequested InstallationState = "Requested"
	// InstallationComplete says that the image of the attempt is on the disk.
	InstallationComplete InstallationState = "Complete"
	// InstallationReleasing says that the Machine is being deleted and that its server is powered off for that.
	InstallationReleasing InstallationState = "Releasing"
)

// Installation is what a BareMetalHost says in its annotation ingot.dev/installation of what its Machine has there. A backup of objects keeps
// annotations and drops status, so a Machine, its host and its HostRecord find each other again by it. It holds nothing secret.
type Installation struct {
	// Machine that has the host, with the uid that it claimed the host under.
	Machine MachineReference `json:"machine"`
	// Tenant is namespace/name of the TenantCluster.
	Tenant string `json:"tenant"`
	// NodeType of the Machine.
	NodeType string `json:"nodeType"`
	// State is how far it is.
	State InstallationState `json:"state"`
	// Revision, Rendering and Attempt are those of the installation.
	Revision  string `json:"revision"`
	Rendering string `json:"rendering,omitempty"`
	Attempt   int64  `json:"attempt"`
	// SystemUUID is what the agent read from DMI.
	SystemUUID string `json:"systemUUID,omitempty"`
	// ProviderID is that of the Machine's status.
	ProviderID ProviderIDSource `json:"providerID,omitempty"`
	// RootDisk is the disk that the image was written to.
	RootDisk *DiskInventory `json:"rootDisk,omitempty"`
	// Disks are those that an erase must find or know to be gone.
	Disks []KnownDisk `json:"disks,omitempty"`
}

// Installed is the revision and the rendering of the installation.
func (i *Installation) Installed() RenderedRevision {
	return RenderedRevision{Revision: i.Revision, Rendering: i.Rendering}
}

// IsSameWork reports whether both speak of the same state of the same attempt.
func (i *Installation) IsSameWork(other *Installation) bool {
	return i != nil && other != nil && i.Machine == other.Machine && i.Tenant == other.Tenant && i.NodeType == other.NodeType &&
		i.State == other.State && i.Attempt == other.Attempt && i.Installed() == other.Installed()
}

// InstallationOf reads the annotation ingot.dev/installation; nil: there is none.
func InstallationOf(host metav1.Object) (*Installation, error) {
	text := host.GetAnnotations()[AnnotationInstallation]
	if text == "" {
		return nil, nil
	}
	out := &Installation{}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return nil, fmt.Errorf("annotation %s cannot be read: %w", AnnotationInstallation, err)
	}
	return out, nil
}

// RegisteredAs is the value of the annotation ingot.dev/registered-as that belongs to the object.
func RegisteredAs(o metav1.Object) string {
	return o.GetNamespace() + "/" + o.GetName() + "/" + string(o.GetUID())
}

// maxFormerly is how many earlier uids an object keeps.
const maxFormerly = 8

// FormerUIDs returns the earlier uids of a BareMetalHost or NodePool that was created again from a backup of itself, the last one first. Those in the
// annotations of a manifest that was copied for another server are not its own.
func FormerUIDs(o metav1.Object) []string {
	var uids []string
	for _, was := range append([]string{o.GetAnnotations()[AnnotationRegisteredAs]}, strings.Split(o.GetAnnotations()[AnnotationFormerly], ",")...) {
		if uid := ownUID(o, was); uid != "" && uid != string(o.GetUID()) && !slices.Contains(uids, uid) && len(uids) < maxFormerly {
			uids = append(uids, uid)
		}
	}
	return uids
}

// ownUID returns the uid in a value of RegisteredAs of the object or of an earlier one of its name; empty: it is another object's.
func ownUID(o metav1.Object, registeredAs string) string {
	uid, isOwn := strings.CutPrefix(registeredAs, o.GetNamespace()+"/"+o.GetName()+"/")
	if !isOwn {
		return ""
	}
	return uid
}

// Register writes RegisteredAs into the annotations of the object, and keeps what it was registered as before.
func Register(o metav1.Object) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	var formerly []string
	for _, uid := range FormerUIDs(o) {
		formerly = append(formerly, o.GetNamespace()+"/"+o.GetName()+"/"+uid)
	}
	if annotations[AnnotationFormerly] = strings.Join(formerly, ","); len(formerly) == 0 {
		delete(annotations, AnnotationFormerly)
	}
	annotations[AnnotationRegisteredAs] = RegisteredAs(o)
	o.SetAnnotations(annotations)
}

// IsRestored reports whether the BareMetalHost, NodePool or Entitlement was created again from a backup of itself: its annotation ingot.dev/registered-as has its name
// and the uid of an earlier object. A manifest that was copied for another server has another name.
func IsRestored(o metav1.Object) bool {
	was := o.GetAnnotations()[AnnotationRegisteredAs]
	return was != RegisteredAs(o) && strings.HasPrefix(was, o.GetNamespace()+"/"+o.GetName()+"/")
}

// ClaimUID is the uid under which the Machine claims its host: its own or, after a restore that created the objects again, the one that it
// had when it was installed. The host's consumerRef, the HostRecord, the documents, the bootstrap token and the Node's providerID have it.
func (m *Machine) ClaimUID() types.UID {
	if m.Status.InstallationUID != "" {
		return m.Status.InstallationUID
	}
	return m.UID
}

// IsHostUnknown reports whether it is not known whether the Machine has a host: it has no status yet, as after a restore, or a host that was restored names it
// and is not taken over.
func (m *Machine) IsHostUnknown() bool {
	if m.Status.HostRef != nil {
		return false
	}
	c := meta.FindStatusCondition(m.Status.Conditions, ConditionClaimed)
	return m.Status.Phase == "" || c != nil && (c.Reason == ReasonRestoreWaiting || c.Reason == ReasonRestoreUnmatched)
}
