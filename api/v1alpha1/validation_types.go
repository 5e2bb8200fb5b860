package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ValidationSpec is how a node is judged.
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.settle) || duration(self.settle) < duration(self.timeout)",message="settle must be shorter than timeout, or no verdict could ever pass"
type ValidationSpec struct {
	// timeout of Validating; after it Ready is False with the check that waits. The judging goes on.
	// +optional
	// +default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// settle is how long every check must hold before the gate is lifted.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	Settle *metav1.Duration `json:"settle,omitempty"`
	// onFailure says what happens to the gate while the verdict does not pass:
	//   - Hold: the gate stays until the verdict passes.
	//   - Observe: the gate is lifted when the node joins, and the verdict is only reported.
	//
	// +optional
	// +default="Hold"
	OnFailure FailurePolicy `json:"onFailure,omitempty"`
	// gpuModeReport says what a node is worth that does not report the mode of its GPUs, where its unit ingot-gpu-report.service should. A
	// report of another mode than ordered fails in any case.
	//   - Optional: the node can pass.
	//   - Required: the node waits for the report.
	//
	// Without it: Optional.
	// +optional
	GPUModeReport ReportPolicy `json:"gpuModeReport,omitempty"`
}

// ReportPolicy says whether a node must report something about itself.
// +kubebuilder:validation:Enum=Optional;Required
type ReportPolicy string

// Report policies.
const (
	// ReportOptional: a node that reports nothing can pass.
	ReportOptional ReportPolicy = "Optional"
	// ReportRequired: a node waits for its report.
	ReportRequired ReportPolicy = "Required"
)
