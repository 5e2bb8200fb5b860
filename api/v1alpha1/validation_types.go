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
	// probe is a last check by use: before the gate is lifted a pod uses the devices that the node promises. Without it: no pod is made.
	// +optional
	Probe *ProbeSpec `json:"probe,omitempty"`
}

// ProbeSpec is a pod that uses the devices of a node once in each boot before the node is admitted, one pod for each promised resource or DeviceClass.
// +kubebuilder:validation:XValidation:rule="self.kind != 'Command' || has(self.command)",message="kind: Command needs command"
// +kubebuilder:validation:XValidation:rule="!has(self.command) || self.kind == 'Command' || self.kind == 'HealthValidation'",message="command is for kind: Command, or for kind: HealthValidation where its image has the program elsewhere"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'DCGMDiag') == has(self.level)",message="level is for kind: DCGMDiag, which needs it: 1 to 4"
type ProbeSpec struct {
	// kind of the probe:
	//   - NvidiaSMI: nvidia-smi -L must list the promised number of GPUs or MIG instances.
	//   - DCGMDiag: no test of dcgmi diag at level may fail. Each that fails is a check.
	//   - HealthValidation: the verdict of NVIDIA Health Validation must not be CRITICAL or UNKNOWN. Each category that is one is a check.
	//   - Command: command must end with exit code 0. When the last line of what it writes to /dev/termination-log is JSON, it decides:
	//     {"checks": [{"name": "nccl", "result": "Pass", "message": "412 GB/s"}]}.
	//
	// +required
	Kind ProbeKind `json:"kind"`
	// image of the pod. It needs nvidia-smi for NvidiaSMI; nv-hostengine and dcgmi for DCGMDiag; health-validation for HealthValidation; for all three a
	// shell, and for the last two gzip and base64. The pod runs in the namespace default of the tenant's cluster, as user 65534, without any privilege: a
	// test that needs more is skipped, or fails.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`
	// level of dcgmi diag: 1 takes seconds, 2 two minutes, 3 a quarter of an hour, and 4 one to two hours.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4
	Level int32 `json:"level,omitempty"`
	// command of the pod. That of HealthValidation must write the verdict to its standard output; without it: health-validation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`
	// timeout of one pod, with the time to pull its image. Without it: 5m, and for DCGMDiag at the levels 2 to 4 15m, 45m and 4h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// ProbeKind is a kind of probe.
// +kubebuilder:validation:Enum=NvidiaSMI;DCGMDiag;HealthValidation;Command
type ProbeKind string

// Kinds of probes.
const (
	// ProbeNvidiaSMI compares nvidia-smi -L with the promise.
	ProbeNvidiaSMI ProbeKind = "NvidiaSMI"
	// ProbeDCGMDiag runs dcgmi diag.
	ProbeDCGMDiag ProbeKind = "DCGMDiag"
	// ProbeHealthValidation runs NVIDIA Health Validation.
	ProbeHealthValidation ProbeKind = "HealthValidation"
	// ProbeCommand runs the user's command.
	ProbeCommand ProbeKind = "Command"
)

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

// FailurePolicy is what a verdict does.
// +kubebuilder:validation:Enum=Hold;Observe
type FailurePolicy string

// Failure policies.
const (
	// OnFailureHold keeps the gate until a verdict passes.
	OnFailureHold FailurePolicy = "Hold"
	// OnFailureObserve lifts the gate at the join and only reports.
	OnFailureObserve FailurePolicy = "Observe"
)
