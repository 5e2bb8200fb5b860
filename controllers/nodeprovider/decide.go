package nodeprovider

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// problem is a reason and a message of the condition Ready that is False.
type problem struct {
	reason  string
	message string
}

// isMissingRights reports whether the manager lacks rights. Those are not watched.
func (p *problem) isMissingRights() bool {
	return p.reason == v1alpha1.ReasonHostNamespaceDenied || p.reason == v1alpha1.ReasonManagerLimited
}

// findProblem returns why the host namespace cannot be the provider's, or why nobody would drive its hosts; nil: the namespace is the provider's, or it can be claimed.
// Two controllers that drive the same BMCs would undo each other's actions.
func findProblem(obs observation) *problem {
	namespace, name := obs.provider.Spec.HostNamespace, obs.provider.Name
	switch {
	case obs.namespace == nil:
		return &problem{v1alpha1.ReasonHostNamespaceNotFound, fmt.Sprintf("the host namespace %s of NodeProvider %s does not exist: create it", namespace, name)}
	case obs.owner() != "" && obs.owner() != name:
		return &problem{v1alpha1.ReasonHostNamespaceTaken, fmt.Sprintf(
			"namespace %s belongs to NodeProvider %s by its annotation %s: give NodeProvider %s a namespace of its own", namespace, obs.owner(), v1alpha1.AnnotationNodeProvider, name)}
	case obs.foreignHost != "" && obs.provider.Spec.Metal3 == nil:
		return &problem{v1alpha1.ReasonHostNamespaceTaken, fmt.Sprintf(
			"BareMetalHost %s/%s carries the finalizer of a baremetal-operator, which serves this namespace: use a metal3 provider, or another namespace", namespace, obs.foreignHost)}
	case obs.isLimited:
		return &problem{v1alpha1.ReasonManagerLimited, fmt.Sprintf("the manager may create no HostRecord in namespace %s, so that nobody would drive its hosts: it has the rights of config/metal3, which is for sites where every "+
			"NodeProvider has spec.metal3. Install it without that component; where a baremetal-operator has brought Metal3's CRDs, without ../crd/metal3 too", namespace)}
	}
	return caBundleProblem(obs.provider)
}

// namespaceDeniedProblem returns the problem of a manager that has no permission in the host namespace.
func namespaceDeniedProblem(obs observation) *problem {
	return &problem{v1alpha1.ReasonHostNamespaceDenied, fmt.Sprintf(
		"Ingot may not claim the host namespace %s of NodeProvider %s: bind ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding there, "+
			"as config/samples/00-namespaces.yaml does", obs.namespace.Name, obs.provider.Name)}
}
