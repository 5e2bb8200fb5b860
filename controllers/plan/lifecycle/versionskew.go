package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// VersionSkewProblem says why a kubelet of the given version must not join an API server of the given version; empty: it may.
// A kubelet must not be newer than the API server, and at most three minor versions older
// (kubernetes.io/releases/version-skew-policy).
func VersionSkewProblem(kubelet, apiServer string) string {
	k, err := version.ParseGeneric(kubelet)
	if err != nil {
		return fmt.Sprintf("the image's kubelet version %q is not a version: correct spec.software.kubelet in a new OSImage", kubelet)
	}
	s, err := version.ParseGeneric(apiServer)
	if err != nil {
		return fmt.Sprintf("the tenant's API server says version %q, which is not a version", apiServer)
	}
	switch {
	case k.Major() != s.Major() || k.Minor() > s.Minor():
		return fmt.Sprintf("the image's kubelet %s is newer than the tenant's API server %s: use an older image or upgrade the tenant", kubelet, apiServer)
	case s.Minor()-k.Minor() > 3:
		return fmt.Sprintf("the image's kubelet %s is more than three minor versions older than the tenant's API server %s: use a newer image", kubelet, apiServer)
	default:
		return ""
	}
}
