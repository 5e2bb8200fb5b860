package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonQueued of a Machine's condition Provisioned: the host waits for its turn, because its NodeProvider works on a limited number of hosts; the message has its place.
const ReasonQueued = "Queued"

// HostQueue is the place of a host that waits until its installer may work on it, because the installer works on as many hosts as
// spec.ironic.limits of the NodeProvider says. Nothing of the work has begun, and no deadline runs.
type HostQueue struct {
	// operation that it waits for: Install, Erase.
	// +required
	Operation string `json:"operation"`
	// place is one more than the number of hosts that come before it.
	// +required
	Place int32 `json:"place"`
	// since is when it began to wait.
	// +required
	Since metav1.MicroTime `json:"since"`
}
