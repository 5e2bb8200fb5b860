package lifecycle

import (
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// A baremetal-operator removes the annotation reboot.metal3.io when it sees that the server is off: see Host.isPowerCurrent. Ingot writes it with each
// request to power off, and a person may write the same annotation for a reboot. The functions of this file change a host in memory, and keep the two
// apart by the value. Annotations reboot.metal3.io/SUFFIX are others' and are not touched: with one of them a server stays off until it is removed.

// ownReboot is the value of Ingot's own annotation. To a baremetal-operator it means the same as an empty one, which a person would write.
const ownReboot = `{"mode":"soft","force":false}`

// RequestPowerOff requests that the host of the Machine with that uid is off. While a person asks for a reboot, only spec.online is written: the
// operator powers the server off all the same and then removes the person's annotation, and the request is completed after that. Without it: the
// person's hard reboot of a server that hangs becomes a soft one or, when Ingot takes its own annotation back, is lost.
//
// A request that was sent while the status said on is kept whatever a person asks for: see IsPowerOffOfRunning.
func RequestPowerOff(h *metal3.BareMetalHost, machine types.UID) {
	isRunning := h.Status.PoweredOn || IsPowerOffOfRunning(h)
	if h.Spec.Online {
		carryErase(h)
	}
	h.Spec.Online = false
	switch {
	case isRunning:
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationPowerOff, string(machine))
	case isRebootOfPerson(h):
		delete(h.Annotations, v1alpha1.AnnotationPowerOff)
	default:
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationPowerOff, string(machine)+seenOff)
	}
	if !isRebootOfPerson(h) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.RebootAnnotationPrefix, ownReboot)
	}
}

// seenOff ends the value of the annotation of a request that was sent while the status said off.
const seenOff = "/seen-off"

// IsPowerOffOfRunning reports whether the status said that the server was on in the version of the host in which Ingot requested the power-off. That it
// says off later is newer than the request then, whatever became of the annotation for a reboot.
func IsPowerOffOfRunning(h *metal3.BareMetalHost) bool {
	value, isRequested := h.Annotations[v1alpha1.AnnotationPowerOff]
	return isRequested && !h.Spec.Online && !strings.HasSuffix(value, seenOff)
}

// WithdrawPowerOff removes what RequestPowerOff has written into the annotations.
func WithdrawPowerOff(h *metal3.BareMetalHost) {
	if h.Annotations[metal3.RebootAnnotationPrefix] == ownReboot {
		delete(h.Annotations, metal3.RebootAnnotationPrefix)
	}
	delete(h.Annotations, v1alpha1.AnnotationPowerOff)
}

// IsPowerOffRequested reports whether Ingot has written its own annotation with the last request to power off, and no person's has taken its
// place. Without it: a person takes back a reboot that was never begun, and Ingot takes the annotation for its own, which is gone because the
// server is off.
func IsPowerOffRequested(h *metal3.BareMetalHost) bool {
	_, isRequested := h.Annotations[v1alpha1.AnnotationPowerOff]
	return isRequested && !isRebootOfPerson(h)
}

// isRebootOfPerson reports whether the host has the annotation for a reboot, and Ingot has not written it.
func isRebootOfPerson(h *metal3.BareMetalHost) bool {
	value, isSet := h.Annotations[metal3.RebootAnnotationPrefix]
	return isSet && value != ownReboot
}
