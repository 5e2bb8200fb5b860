package tenantaccess

import (
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// identityPath is the Namespace whose uid identifies a cluster: every cluster has it from its first minute on, and nobody can delete it.
const identityPath = "/api/v1/namespaces/kube-system"

// readClusterUID returns the uid of the Namespace kube-system. It is empty where the kubeconfig's user may not read it, or where it does not exist yet.
func (s *clientSet) readClusterUID() (types.UID, error) {
	raw, err := s.prober.Get().AbsPath(identityPath).Do(s.ctx).Raw()
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var found metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &found); err != nil || len(found.UID) > v1alpha1.MaxClusterUID {
		return "", errors.New("GET " + identityPath + " answered something that is no Namespace")
	}
	return found.UID, nil
}

// Expect says which cluster the tenant's kubeconfig must lead to; an empty uid accepts any. While another cluster answers, For returns an *Error with
// the reason ClusterChanged. It is called before Set. Without it: somebody replaces the kubeconfig, or the cluster at its address, and the
// Nodes of another cluster that have the names of Machines are tainted and drained, while the pods of the first cluster run on without a fence.
func (r *Registry) Expect(key types.NamespacedName, cluster types.UID) {
	r.mu.Lock()
	if r.expected == nil {
		r.expected = map[types.NamespacedName]types.UID{}
	}
	r.expected[key] = cluster
	known := r.tenants[key]
	r.mu.Unlock()
	if known == nil || known.clients == nil {
		return
	}
	known.clients.mu.Lock()
	known.clients.expected = cluster
	known.clients.mu.Unlock()
	known.clients.updateUsable()
}

// checkIdentity returns an error if another cluster answers than the one that is expected, or one that cannot be told. The caller must hold mu.
func (s *clientSet) checkIdentity() error {
	if s.expected == "" || s.clusterUID == s.expected {
		return nil
	}
	if s.clusterUID == "" {
		return &Error{Tenant: s.key, Reason: v1alpha1.ReasonTenantUnauthorized, Err: fmt.Errorf(
			"the Namespace kube-system of %s cannot be read any more, so nobody knows whether it is the cluster %s, which the Machines joined: "+
				"allow the kubeconfig's user to get it", s.config.Host, s.expected)}
	}
	return &Error{Tenant: s.key, Reason: v1alpha1.ReasonClusterChanged, Err: fmt.Errorf(
		"this TenantCluster's Machines joined the cluster %s (the uid of its Namespace kube-system) or are being installed for it, and %s is the cluster %s: nothing is drained, tainted or deleted there. "+
			"Restore the kubeconfig of the first cluster, or scale the NodePools that refer to this TenantCluster to 0 and delete its other Machines; the other cluster is accepted when none of these is left",
		s.expected, s.config.Host, s.clusterUID)}
}
