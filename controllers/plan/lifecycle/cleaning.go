package lifecycle

import (
	"cmp"
	"strconv"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// A baremetal-operator cleans a host when its image is removed, as spec.automatedCleaningMode says at that time. The field may say something
// else later, so which mode ran is written down with the request, in the annotation ingot.dev/last-erase. The functions of this file change a
// host in memory; each of them goes into the one write of an Action.

// PassOnErase gives a host that a Machine has the cleaning mode of its NodeProvider's policy: none where that asks for no erase, and otherwise the mode
// that the host itself has. A policy never has a host cleaned that says disabled itself. Without it: an administrator disables the cleaning of one
// host, because its disks must be kept, and the default policy has them cleaned. Such a host says that its last erase is None.
func PassOnErase(h *metal3.BareMetalHost, policy *v1alpha1.ErasePolicy) {
	if policy != nil && policy.OnRelease == v1alpha1.EraseNone {
		setAsideCleaning(h)
		return
	}
	restoreCleaning(h)
}

// BeginRoll is called before the image of a host is removed only for its next image. It disables the cleaning, unless the policy has a roll erase too.
func BeginRoll(h *metal3.BareMetalHost, policy *v1alpha1.ErasePolicy) {
	if policy != nil && policy.OnRoll == v1alpha1.EraseMetadata {
		BeginErase(h, policy)
		return
	}
	setAsideCleaning(h)
}

// KeepCleaningSetAside disables the cleaning again that somebody has enabled since BeginRoll. The host gets the mode back in the end that it was given meanwhile.
// Without it: a site applies the manifest of a host again in a roll, the next installation fails, and its operator cleans all disks of the host before it tries
// again: what a node keeps there is lost, and nothing tells of it.
func KeepCleaningSetAside(h *metal3.BareMetalHost) {
	if IsCleaningChanged(h) {
		setAsideCleaning(h)
	}
}

// setAsideCleaning disables the cleaning of a host, and keeps its own mode in an annotation.
func setAsideCleaning(h *metal3.BareMetalHost) {
	if h.Spec.AutomatedCleaningMode == metal3.CleaningModeDisabled {
		return
	}
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationCleaningMode, string(cmp.Or(h.Spec.AutomatedCleaningMode, metal3.CleaningModeMetadata)))
	h.Spec.AutomatedCleaningMode = metal3.CleaningModeDisabled
}

// restoreCleaning gives the host the mode back that setAsideCleaning has kept.
func restoreCleaning(h *metal3.BareMetalHost) {
	if mode := h.Annotations[v1alpha1.AnnotationCleaningMode]; mode != "" {
		h.Spec.AutomatedCleaningMode = metal3.AutomatedCleaningMode(mode)
		delete(h.Annotations, v1alpha1.AnnotationCleaningMode)
	}
}

// BeginErase gives a host that is released the mode of the policy, and writes down what runs now. It is called before the image is removed.
//
// Nothing runs on a host that is not provisioned any more: its operator has cleaned it after a failed installation, by the mode that BeginInstallation
// wrote down. That is the proof, unless the mode is another one by now. Where a roll had set the cleaning aside, nothing was cleaned. It counts as none
// also while the installation is tried, because nothing is cleaned where the installer had not begun. Without it: a roll leaves the disks as they are,
// its installation fails, the Machine is deleted, and another tenant gets the host with the data of the node before the roll.
func BeginErase(h *metal3.BareMetalHost, policy *v1alpha1.ErasePolicy) {
	wasSetAside := isCleaningSetAside(h)
	PassOnErase(h, policy)
	switch state := h.Status.Provisioning.State; {
	case state == metal3.StateProvisioned, state == metal3.StateProvisioning && !wasSetAside && !isUnerased(h):
		setLastErase(h, eraseOf(h))
	case wasSetAside, h.Annotations[v1alpha1.AnnotationLastErase] != string(eraseOf(h)):
		setLastErase(h, v1alpha1.EraseNone)
	default:
		carryErase(h)
	}
}

// EndErase withdraws what BeginErase wrote where the mode was changed meanwhile, because nobody knows which of the two ran. That is so also where it may
// have been changed and changed back. It is called when the host is returned. Where the cleaning is set aside then, the host was deprovisioned without one, as for a roll. The host gets its own mode back.
func EndErase(h *metal3.BareMetalHost) {
	wasSetAside := isCleaningSetAside(h)
	restoreCleaning(h)
	if erased, isSet := h.Annotations[v1alpha1.AnnotationLastErase]; wasSetAside || isSet && erased != string(eraseOf(h)) || isChangedSinceErase(h) {
		setLastErase(h, v1alpha1.EraseNone)
	}
	delete(h.Annotations, v1alpha1.AnnotationEraseGeneration)
}

// IsCleaningChanged reports whether somebody has changed the cleaning mode that setAsideCleaning had set to disabled.
func IsCleaningChanged(h *metal3.BareMetalHost) bool {
	return isCleaningSetAside(h) && h.Spec.AutomatedCleaningMode != metal3.CleaningModeDisabled
}

// isChangedSinceErase reports whether the spec was changed twice since BeginErase, so that the cleaning mode may have been another in between. One change is
// none of the mode where that is what it was.
func isChangedSinceErase(h *metal3.BareMetalHost) bool {
	noted, isNoted := h.Annotations[v1alpha1.AnnotationEraseGeneration]
	generation, err := strconv.ParseInt(noted, 10, 64)
	return isNoted && (err != nil || h.Generation > generation+1)
}

// carryErase is called before Ingot's own change of the spec of a host that is being released, which is none of those that isChangedSinceErase counts.
func carryErase(h *metal3.BareMetalHost) {
	_, isNoted := h.Annotations[v1alpha1.AnnotationEraseGeneration]
	if isNoted && !isChangedSinceErase(h) && h.Annotations[v1alpha1.AnnotationLastErase] == string(eraseOf(h)) {
		noteEraseGeneration(h)
	}
}

// noteEraseGeneration writes down the generation that the host has after the write of which this is part, and which changes its spec.
func noteEraseGeneration(h *metal3.BareMetalHost) {
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationEraseGeneration, strconv.FormatInt(h.Generation+1, 10))
}

// isCleaningSetAside reports whether setAsideCleaning has changed the mode, and nothing has restored it since.
func isCleaningSetAside(h *metal3.BareMetalHost) bool {
	return h.Annotations[v1alpha1.AnnotationCleaningMode] != ""
}

func setLastErase(h *metal3.BareMetalHost, mode v1alpha1.EraseMode) {
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationLastErase, string(mode))
	delete(h.Annotations, v1alpha1.AnnotationEraseGeneration)
	if mode == v1alpha1.EraseMetadata {
		noteEraseGeneration(h)
	}
}

// BeginInstallation writes down by which mode the operator cleans the host if the installation fails. It is called with the request. isUsed is true when
// a tenant had the disks before, this Machine's own among them.
//
// That nothing was erased stays until an installation has succeeded, and so does that nobody knows. Without it: a host comes back from a roll as it was,
// the next Machine of the same tenant claims it and is deleted before the installer has begun, nothing is cleaned, and the host says that it was.
func BeginInstallation(h *metal3.BareMetalHost, isUsed bool) {
	_, isKnown := h.Annotations[v1alpha1.AnnotationLastErase]
	switch {
	case isUsed && !isKnown:
		setLastErase(h, v1alpha1.EraseNone)
	case !isUsed || !isUnerased(h):
		setLastErase(h, eraseOf(h))
	}
}

// EndInstallation gives a host whose installation has succeeded the mode of the policy, and removes what it said of erases: they say nothing about the
// disks any more, and the whole installation is cleaned when it is removed.
func EndInstallation(h *metal3.BareMetalHost, policy *v1alpha1.ErasePolicy) {
	PassOnErase(h, policy)
	delete(h.Annotations, v1alpha1.AnnotationLastErase)
	delete(h.Annotations, v1alpha1.AnnotationEraseGeneration)
}

// isUnerased reports whether the host says that its disks have what an earlier Machine left there.
func isUnerased(h *metal3.BareMetalHost) bool {
	return h.Annotations[v1alpha1.AnnotationLastErase] == string(v1alpha1.EraseNone)
}

func eraseOf(h *metal3.BareMetalHost) v1alpha1.EraseMode {
	if h.Spec.AutomatedCleaningMode == metal3.CleaningModeDisabled {
		return v1alpha1.EraseNone
	}
	return v1alpha1.EraseMetadata
}
