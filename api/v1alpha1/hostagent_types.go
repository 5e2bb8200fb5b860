package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostAgent is the agent that owns a boot: no other one is served with the token of that boot.
type HostAgent struct {
	// keyDigest is the SHA-256 digest of the agent's random key, in hexadecimal digits; the key itself is stored nowhere.
	// +required
	// +kubebuilder:validation:MaxLength=64
	KeyDigest string `json:"keyDigest"`
	// address that it registered from. It is for people and decides nothing about a boot: firmware, iPXE and the kernel may get different leases. The
	// serving certificate of the node that it installed may have it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
	// registeredAt is when it registered.
	// +required
	RegisteredAt metav1.MicroTime `json:"registeredAt"`
	// heardAt is when it was last heard; it is stored about once a minute.
	// +required
	HeardAt metav1.MicroTime `json:"heardAt"`
}

// MaxBootURL is the length of the longest base URL that is stored.
const MaxBootURL = 512

// KernelAwaited is a boot document whose kernel the server has not asked for yet.
type KernelAwaited struct {
	// at is when the document was served.
	// +required
	At metav1.MicroTime `json:"at"`
	// url is the base URL of the kernel and the initrd that it names.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`
}

// HostFindingReason says what was noticed.
type HostFindingReason string

// Reasons of findings, which are also the reasons of their events.
const (
	// FindingAnotherAgent means that a program with another key used the token of the current boot and was refused. The message names
	// the addresses of both.
	FindingAnotherAgent HostFindingReason = "AnotherAgent"
	// FindingBootRequestedAgain means that a boot document was requested while the agent was at work. The message names the addresses of both.
	FindingBootRequestedAgain HostFindingReason = "BootRequestedAgain"
	// FindingServerDiffers means that the agent's server differs from the known hardware of the host.
	FindingServerDiffers HostFindingReason = "ServerDiffers"
	// FindingBootLoadFailed means that the server has said that it could not load or start the agent's kernel or initrd. The message has the
	// address that it was to load from, and iPXE's error.
	FindingBootLoadFailed HostFindingReason = "BootLoadFailed"
	// FindingKernelNotRequested means that the server got its boot document and asked for no kernel for a minute: the address in the document
	// does not lead to the boot service from there.
	FindingKernelNotRequested HostFindingReason = "KernelNotRequested"
	// FindingNoAgentRegistered means that the server fetched the agent's kernel and no agent has registered for some minutes. The message says how
	// often the server has booted; the reason is on its console.
	FindingNoAgentRegistered HostFindingReason = "NoAgentRegistered"
	// FindingBootWayRefused means that the BMC cannot boot the server in the way that the NodeProvider prefers, so that its next way is used. The
	// message has the BMC's refusal.
	FindingBootWayRefused HostFindingReason = "BootWayRefused"
	// FindingInventoryDiffers means that the agent has found other GPUs, less memory or fewer disks than the BMC reports. What the agent found is kept.
	FindingInventoryDiffers HostFindingReason = "InventoryDiffers"
	// FindingBootWaySilent means that no agent came up in two boots in a row by a way that the NodeProvider prefers, so that its next way is used.
	FindingBootWaySilent HostFindingReason = "BootWaySilent"
	// FindingBootNotEncrypted means that the firmware loads the agent by HTTP from its pinned URL, and not by HTTPS. The message says why.
	FindingBootNotEncrypted HostFindingReason = "BootNotEncrypted"
)

// The condition of a HostRecord.
const (
	// ConditionUndeleted is False with the reason KeptForMachine while the host is being deleted and a Machine has it. Otherwise it is absent.
	ConditionUndeleted = "Undeleted"
	// ConditionAgentUndisputed is True when the boot service has noticed nothing in the attempt, and False with the reason of the first finding.
	ConditionAgentUndisputed = "AgentUndisputed"
	// ReasonUndisputed is its reason when it is True.
	ReasonUndisputed = "Undisputed"
)

// ReportedFindings are the kinds of findings of one attempt that an event was published for.
type ReportedFindings struct {
	// attempt is the number of the attempt.
	// +required
	Attempt int64 `json:"attempt"`
	// reasons of the findings.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Reasons []HostFindingReason `json:"reasons,omitempty"`
}

// HostFinding is something that the boot service noticed.
type HostFinding struct {
	// reason in UpperCamel:
	//   - AnotherAgent: a program with another key used the token of the current boot and was refused.
	//   - BootRequestedAgain: a boot document was requested while the agent was at work; the server was told to wait.
	//   - ServerDiffers: serial number, system UUID or NICs differ from the known hardware of the host.
	//   - BootLoadFailed: the server has said that it could not load or start the agent's kernel or initrd.
	//   - KernelNotRequested: the server got its boot document and asked for no kernel for a minute.
	//   - NoAgentRegistered: the server fetched the agent's kernel and no agent has registered for some minutes.
	//   - BootWayRefused: the BMC cannot boot the server in the preferred way, so that the next one is used.
	//   - InventoryDiffers: the agent has found other GPUs, less memory or fewer disks than the BMC reports.
	//   - BootWaySilent: no agent came up in two boots in a row by the preferred way, so that the next one is used.
	//   - BootNotEncrypted: the firmware loads the agent by HTTP from its pinned URL, because it cannot be told to trust the boot service.
	//
	// +required
	// +kubebuilder:validation:Enum=AnotherAgent;BootRequestedAgain;ServerDiffers;BootLoadFailed;KernelNotRequested;NoAgentRegistered;BootWayRefused;InventoryDiffers;BootWaySilent;BootNotEncrypted
	Reason HostFindingReason `json:"reason"`
	// message says what was expected and what was seen, with the addresses.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// count is how often it was noticed, at most once a minute.
	// +required
	Count int32 `json:"count"`
	// at is when it was last counted.
	// +required
	At metav1.MicroTime `json:"at"`
}

// AgentChannel is how an agent was booted on a server and how it spoke. Against whom what it reports is a proof is in .github/SECURITY.md.
// +kubebuilder:validation:Enum=VirtualMedia;PinnedHTTPS;VirtualMediaHTTP;PinnedHTTP;IronicVirtualMedia;UnverifiedBMC;IronicNetwork;Network
type AgentChannel string

// TPMProof is what the TPM of a server proves of an agent.
// +kubebuilder:validation:Enum=Listed;Known;FirstUse;Unlisted;Differs;None;Failed
type TPMProof string

// HostTPM is what an agent has reported of its server's TPM.
type HostTPM struct {
	// proof is what it proves:
	//   - Listed: the TPM has opened what was sealed for the key that the annotation ingot.dev/tpm-key lists.
	//   - Known: the same for the key that an agent reported before.
	//   - FirstUse: the same for a key that was seen first then, and is trusted from then on.
	//   - Unlisted: the same for a key that is not trusted, because the host has had a tenant and a neighbour could have been first.
	//   - Differs: another key than the one that is listed or known; the agent was refused.
	//   - None: the server has no TPM 2.0.
	//   - Failed: the TPM proved nothing; error says why.
	//
	// +required
	Proof TPMProof `json:"proof"`
	// key is the SHA-256 digest of the endorsement key's SubjectPublicKeyInfo, in hexadecimal digits.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Key string `json:"key,omitempty"`
	// certificate of that key, DER in base64, where the TPM has one. Who has signed it is not checked.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Certificate string `json:"certificate,omitempty"`
	// error of the TPM.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Error string `json:"error,omitempty"`
}

// SilentBoots are boots in a row by one way in which no agent came up.
type SilentBoots struct {
	// way of the boots:
	//   - Network: PXE or HTTP boot of the boot NIC.
	//   - PinnedHTTP: UEFI HTTP boot of the URL that the BMC holds.
	//   - VirtualMedia: a CD image that the BMC presents to the server.
	//
	// +required
	Way BootWay `json:"way"`
	// boots is their number. After the second one the next way of the NodeProvider is used.
	// +required
	Boots int32 `json:"boots"`
}

// The limits of WantedAttempt.message and HostAttempt.message, and of HostRecordStatus.retrySeen, in bytes.
const (
	MaxAttemptMessage = 4096
	MaxRetrySeen      = 256
)
