// Package skew judges whether a kubelet may join an API server.
package skew

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Check says why a kubelet must not join an API server, or nothing when it may: it must not be newer, and at most three
// minor versions older (kubernetes.io/releases/version-skew-policy).
func Check(kubelet, server string) string {
	k, err := version.ParseGeneric(kubelet)
	if err != nil {
		return fmt.Sprintf("the image's kubelet version %q is not a version: correct spec.software.kubelet in a new OSImage", kubelet)
	}
	s, err := version.ParseGeneric(server)
	if err != nil {
		return fmt.Sprintf("the tenant's API server says version %q, which is not a version", server)
	}
	switch {
	case k.Major() != s.Major() || k.Minor() > s.Minor():
		return fmt.Sprintf("the image's kubelet %s is newer than the tenant's API server %s: use an older image or upgrade the tenant", kubelet, server)
	case s.Minor()-k.Minor() > 3:
		return fmt.Sprintf("the image's kubelet %s is more than three minor versions older than the tenant's API server %s: use a newer image", kubelet, server)
	default:
		return ""
	}
}
