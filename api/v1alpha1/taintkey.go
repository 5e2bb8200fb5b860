package v1alpha1

import (
	"regexp"
	"slices"
)

// managedTaintDomains matches the keys of taints whose domain belongs to somebody whose programs place and remove taints. A gate with such a
// key is lifted by them. The CRD refuses them in gate.taintKey of a new NodeType by the same expression.
//
//   - Kubernetes: the node lifecycle controller removes node.kubernetes.io/*, cloud controllers remove node.cloudprovider.kubernetes.io/*
//     (kubernetes.io/docs/reference/labels-annotations-taints); Cluster API removes node.cluster.x-k8s.io/uninitialized.
//   - Clouds and autoscalers: Karpenter removes karpenter.sh/*, CSI drivers of AWS remove *.csi.aws.com/agent-not-ready.
//   - Networks: Cilium removes node.cilium.io/agent-not-ready once its agent runs, Istio cni.istio.io/not-ready.
//   - Vendors: the operators of NVIDIA, AMD and Intel.
var managedTaintDomains = regexp.MustCompile(`^([a-z0-9.-]+[.])?(kubernetes[.]io|(x-)?k8s[.]io|k8s[.]aws|amazonaws[.]com|aws[.]com|azure[.]com|google[.]com|oraclecloud[.]com|digitalocean[.]com|openshift[.]io|gardener[.]cloud|karpenter[.]sh|virtual-kubelet[.]io|medik8s[.]io|cilium[.]io|istio[.]io|projectcalico[.]org|antrea[.]io|kubevirt[.]io|nvidia[.]com|mellanox[.]com|amd[.]com|intel[.]com|habana[.]ai|aws-node-termination-handler)/`)

// managedTaintKeys are the keys without a domain that programs place and remove: those of the cluster autoscaler
// (kubernetes/autoscaler, utils/taints), of k3s and RKE2, and of AMD's device configuration manager and GPU operator.
var managedTaintKeys = []string{"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "CriticalAddonsOnly", "amd-dcm", "amd-gpu-unhealthy"}

// IsManagedTaintKey reports whether Kubernetes, a cloud provider or a vendor places and removes taints of the key, so that it is no key for
// a gate.
func IsManagedTaintKey(key string) bool {
	return managedTaintDomains.MatchString(key) || slices.Contains(managedTaintKeys, key)
}
