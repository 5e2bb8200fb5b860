package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is ingot.dev/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: "ingot.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the kinds of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&OSImage{}, &OSImageList{},
		&NodeProvider{}, &NodeProviderList{},
		&NodeType{}, &NodeTypeList{},
		&NodeTypeRevision{}, &NodeTypeRevisionList{},
		&NodeTypeRendering{}, &NodeTypeRenderingList{},
		&NodePool{}, &NodePoolList{},
		&NodeQuota{}, &NodeQuotaList{},
		&Entitlement{}, &EntitlementList{},
		&Machine{}, &MachineList{},
		&TenantCluster{}, &TenantClusterList{},
		&Rollout{}, &RolloutList{},
		&HostRecord{}, &HostRecordList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
