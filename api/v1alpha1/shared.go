package v1alpha1

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Names that Ingot gives to things in the management and the tenants' clusters.
const (
	// DefaultGateTaintKey is the key of the taint that keeps tenants' pods off a node until its verdict passes.
	DefaultGateTaintKey = "ingot.dev/unvalidated"
	// NewGateValue is the value of that taint on a Node that registers. Later it is the reason of the Machine's condition Validated. A toleration of the gate has
	// the operator Exists.
	NewGateValue = ReasonChecksWaiting
	// MachineFinalizer holds a Machine until its host is back in the pool.
	MachineFinalizer = "ingot.dev/machine"
	// HostFinalizer holds a BareMetalHost of a redfish provider until its work has ended.
	HostFinalizer = "ingot.dev/host"
	// TenantFinalizer holds a TenantCluster while Machines refer to it.
	TenantFinalizer = "ingot.dev/tenantcluster"
	// InUseFinalizer holds NodeTypes, NodeProviders, OSImages, NodeTypeRevisions and NodeTypeRenderings while something uses them.
	InUseFinalizer = "ingot.dev/in-use"
	// LabelRollout on a Machine names the Rollout that it is a target of.
	LabelRollout = "ingot.dev/rollout"
	// LabelGPUModel and LabelGPUCount on a BareMetalHost say what inspection found: the catalogue's model and how many. They are absent while
	// nobody could tell.
	LabelGPUModel = "gpu.ingot.dev/model"
	LabelGPUCount = "gpu.ingot.dev/count"
	// LabelNodePool on a Machine names the NodePool that made it.
	LabelNodePool = "ingot.dev/nodepool"
	// LabelNodeType on a Machine and on its Node names the NodeType.
	LabelNodeType = "ingot.dev/nodetype"
	// LabelProbe on a Pod and on a ResourceClaim of a tenant's cluster: Ingot made it to use the devices of the Node that the value names, shortened.
	LabelProbe = "ingot.dev/probe"
	// AnnotationProbeTarget on a Pod of a probe is the resource or DeviceClass that it asks for, AnnotationProbeBoot the boot of the Node, and AnnotationProbeMadeAt
	// when it was made, by the clock of the management cluster.
	AnnotationProbeTarget = "ingot.dev/probe-target"
	AnnotationProbeBoot   = "ingot.dev/probe-boot"
	AnnotationProbeMadeAt = "ingot.dev/probe-made-at"
	// LabelMachineUID on a Node is the uid of its Machine.
	LabelMachineUID = "ingot.dev/machine-uid"
	// LabelHost and LabelNodeRack on a Node name the BareMetalHost that it runs on, and that host's rack.
	LabelHost     = "ingot.dev/host"
	LabelNodeRack = "ingot.dev/rack"
	// LabelInstallation on a Node is the uid and the attempt of the installation that registered it, UID.ATTEMPT, where the cluster sets providerIDs. Kubelet
	// sets it when it registers, and nobody afterwards.
	LabelInstallation = "ingot.dev/installation"
	// LabelRevision on a Node names the NodeTypeRevision that it was installed with.
	LabelRevision = "ingot.dev/revision"
	// AnnotationConfirm on a Rollout has what is held back, because it would be done to many at once, done in spite of that. The value is in the message of its
	// condition FaultsAlone.
	AnnotationConfirm = "ingot.dev/confirm"
	// LabelRack and LabelNVLinkDomain on a BareMetalHost name its rack and its NVLink domain.
	LabelRack         = "rack"
	LabelNVLinkDomain = "nvlink-domain"
	// LabelZone on a BareMetalHost is the zone that NodeType.spec.zone selects.
	LabelZone = "topology.kubernetes.io/zone"
	// AnnotationNodeProvider on a Namespace names the one NodeProvider whose hosts live there.
	AnnotationNodeProvider = "ingot.dev/node-provider"
	// AnnotationInputs on a NodeTypeRevision is a digest of what the NodeType itself gave to it, its NodeProvider's part left out.
	AnnotationInputs = "ingot.dev/nodetype-inputs"
	// AnnotationIPAddress on a BareMetalHost is the address of its boot NIC under the operating system, with prefix length.
	AnnotationIPAddress = "ingot.dev/ip-address"
	// AnnotationNodeAddresses on a BareMetalHost are addresses of its node that Ingot cannot know, separated by commas: those of a DHCP server that gives
	// the operating system others than the agent, or of further NICs. The serving certificate of the node's kubelet may have them.
	AnnotationNodeAddresses = "ingot.dev/node-addresses"
	// AnnotationBootIPAddress on a BareMetalHost is the address of its boot NIC while Ingot's agent works on it, on the network of
	// NodeProvider.spec.redfish.netboot.network.cidr.
	AnnotationBootIPAddress = "ingot.dev/boot-ip-address"
	// AnnotationBondMACs on a BareMetalHost has the MAC addresses of the NICs that are bonded while Ingot's agent works on it, separated by commas.
	AnnotationBondMACs = "ingot.dev/bond-mac-addresses"
	// AnnotationIronicNode on a BareMetalHost of an ironic provider is the UUID or the name of the node of Ironic that the host is. Without it the host is the
	// node with the name NAMESPACE~NAME, then the one with a port of its boot MAC address; where there is none, Ingot creates one. A node that is named must
	// exist, and Ingot leaves the driver and the credentials of a node that it has not created as they are. A host that names its node needs no spec.bmc.
	AnnotationIronicNode = "ingot.dev/ironic-node"
	// AnnotationErase on an unclaimed BareMetalHost asks for an erase (Metadata or Full); removed when it is done. A host of a metal3 provider is not erased
	// by it, and no Machine claims it before the annotation is removed.
	AnnotationErase = "ingot.dev/erase"
	// AnnotationNotSameServer on a BareMetalHost names hosts that it was taken for and is not, as NAME or NAMESPACE/NAME, separated by commas.
	// One of two hosts needs it. It ends the error SameServer of both, unless both have the same BMC: then an address must be corrected.
	AnnotationNotSameServer = "ingot.dev/not-same-server"
	// AnnotationDiskGone on a BareMetalHost declares that disks were taken out, so that an erase does not wait for them: their serial
	// numbers, WWNs or paths, separated by commas; removed when that is recorded in HostRecord.status.disks.
	AnnotationDiskGone = "ingot.dev/disk-gone"
	// AnnotationRootDisk on a BareMetalHost accepts another root disk for the Machine that has the host: the serial number, the WWN or
	// the path of the disk that the next installation is written to; removed when an installation has succeeded.
	AnnotationRootDisk = "ingot.dev/root-disk"
	// AnnotationTPMKey on a BareMetalHost lists the TPM of its server: the fingerprint of its endorsement key, which is the SHA-256 digest of the SubjectPublicKeyInfo, or
	// none. No agent of another server is served. It takes the place of what an agent reported before, so that it accepts a board that was replaced.
	AnnotationTPMKey = "ingot.dev/tpm-key"
	// AnnotationAbandon on a Machine names its host, or is none where it has no host: its finalizer may then be removed by who has the verb
	// abandon on the Machine. The host is neither powered off nor erased, and reports MachineGone.
	AnnotationAbandon = "ingot.dev/abandon"
	// AnnotationRelease on a BareMetalHost that reports MachineGone is the uid of the Machine that is gone: the host is powered off, erased and
	// freed. It is none where the consumerRef has no uid. It asks for the verb abandon on the Machine.
	AnnotationRelease = "ingot.dev/release"
	// AnnotationRegisteredAs on a BareMetalHost, a NodePool and an Entitlement is namespace/name/uid of the object that Ingot took over. An object with another uid was
	// created again from a backup.
	AnnotationRegisteredAs = "ingot.dev/registered-as"
	// AnnotationFormerly on a BareMetalHost and on a NodePool has the values of AnnotationRegisteredAs that the object had under earlier uids, separated by
	// commas, the last one first. What a service outside the cluster keeps under an earlier uid is found by it.
	AnnotationFormerly = "ingot.dev/formerly"
	// AnnotationInstallation on a BareMetalHost says, as JSON of type Installation, what its Machine has on it. Machines find their hosts by it
	// after a restore without status.
	AnnotationInstallation = "ingot.dev/installation"
	// AnnotationPowerOff on a BareMetalHost of a metal3 provider: Ingot has requested that its server is powered off for the Machine with this uid, and
	// has not requested it to be on since. The value ends with /seen-off where the status of the host said off by then.
	AnnotationPowerOff = "ingot.dev/power-off"
	// AnnotationSecretAttempt on a BareMetalHost of a metal3 provider is the last attempt of its Machine that may have a claim Secret, HOST-claim-ATTEMPT. That
	// of the attempt before it may be there still, and no other.
	AnnotationSecretAttempt = "ingot.dev/secret-attempt"
	// AnnotationLastErase on a BareMetalHost of a metal3 provider is which erase (None or Metadata) ran when its last installation was removed. It is
	// absent where nobody knows, and while an installation that has succeeded is there. Until it has, it is the erase that runs when it fails, or None still
	// because something earlier was not erased.
	AnnotationLastErase = "ingot.dev/last-erase"
	// AnnotationCleaningMode on a BareMetalHost of a metal3 provider is the spec.automatedCleaningMode that it gets back when a roll has ended or, where its
	// NodeProvider asks for no erase, when the host is returned.
	AnnotationCleaningMode = "ingot.dev/cleaning-mode"
	// AnnotationEraseGeneration on a BareMetalHost of a metal3 provider, beside AnnotationLastErase, is the metadata.generation of the host with which that erase
	// was requested. A spec that was changed twice since may have had another cleaning mode in between.
	AnnotationEraseGeneration = "ingot.dev/erase-generation"
	// AnnotationRetry on a BareMetalHost in error asks for another try; its value is the caller's, a change of it is the request. It has no effect on a host
	// of a metal3 provider, whose baremetal-operator tries again by itself.
	AnnotationRetry = "ingot.dev/retry"
	// AnnotationCordoned on a Node: Ingot cordoned it, so Ingot may lift that; the cordon of a person stays.
	AnnotationCordoned = "ingot.dev/cordoned"
	// AnnotationGateCordoned on a Node: Ingot cordoned it because something keeps removing its gate, and lifts that when the gate stays or the
	// node is validated.
	AnnotationGateCordoned = "ingot.dev/gate-cordoned"
	// AnnotationGate on a Node says since when and why the gate's taint is on it, and where to look.
	AnnotationGate = "ingot.dev/gate"
	// AnnotationGPUMode on a Node: its own unit reports the boot, and the MIG mode of each GPU in the order of their indexes, separated by blanks. The
	// report can make a check of the verdict fail, and makes no other pass.
	AnnotationGPUMode = "ingot.dev/gpu-mode"
	// AnnotationContainerd on a Node: its own unit reports the boot, and what containerd's configuration lacks, separated by commas, or ok. The report can make
	// a check of the verdict fail, and makes no other pass.
	AnnotationContainerd = "ingot.dev/containerd"
	// AnnotationClaimAttempt on the claim Secret of a host is the attempt of the Machine that its documents were written for.
	AnnotationClaimAttempt = "ingot.dev/attempt"
	// AnnotationClaimHostAttempt on the claim Secret is the number in HostRecord.status.wanted of the installation that its documents were
	// written for; absent where the host has no HostRecord. The boot service serves them to the agent of that installation alone.
	AnnotationClaimHostAttempt = "ingot.dev/host-attempt"
	// AnnotationClaimTokenID on the claim Secret is the public part of the bootstrap token in its documents; empty when they hold none.
	AnnotationClaimTokenID = "ingot.dev/bootstrap-token-id"
	// LabelMachine on a bootstrap-token Secret of a tenant is the uid of the Machine that it was made for.
	LabelMachine = "ingot.dev/machine"
	// ProviderIDPrefix begins every providerID.
	ProviderIDPrefix = "ingot://"
)

// InstallationLabel returns the value of LabelInstallation.
func InstallationLabel(machine types.UID, attempt int64) string {
	return string(machine) + "." + strconv.FormatInt(attempt, 10)
}

// ProviderID is what kubelet registers with, ingot://<Machine uid>/<attempt>: it binds a Node to one installation of its
// Machine.
func ProviderID(machine types.UID, attempt int64) string {
	return ProviderIDPrefix + string(machine) + "/" + strconv.FormatInt(attempt, 10)
}

// AuthorizedKeys returns the SSH keys of all lists in their order. A key that several objects name is authorized once.
func AuthorizedKeys(lists ...[]string) []string {
	var out []string
	for _, key := range slices.Concat(lists...) {
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// LocalReference names a cluster-scoped object, or one in the same namespace.
type LocalReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// NamespacedReference names an object in a namespace.
type NamespacedReference struct {
	// namespace of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Architectures of processors, as Kubernetes names them.
const (
	ArchitectureAMD64 = "amd64"
	ArchitectureARM64 = "arm64"
)

// ImageFormat is the format of an image file.
// +kubebuilder:validation:Enum=raw;raw.gz;raw.zst;qcow2;live-iso
type ImageFormat string

// Image formats.
const (
	FormatRaw     ImageFormat = "raw"
	FormatRawGzip ImageFormat = "raw.gz"
	FormatRawZstd ImageFormat = "raw.zst"
	FormatQCOW2   ImageFormat = "qcow2"
	// FormatLiveISO is a medium that the server runs from: nothing is written to a disk.
	FormatLiveISO ImageFormat = "live-iso"
)

// EraseMode says how much of a host's disks is erased.
// +kubebuilder:validation:Enum=None;Metadata;Full
type EraseMode string

// Erase modes.
const (
	// EraseNone leaves the disks as they are.
	EraseNone EraseMode = "None"
	// EraseMetadata removes partition tables and file-system signatures.
	EraseMetadata EraseMode = "Metadata"
	// EraseFull clears every byte.
	EraseFull EraseMode = "Full"
)

// ConditionReady is the summary condition of every kind: the object does what it is for.
const ConditionReady = "Ready"

// ReasonReady is the reason of Ready=True.
const ReasonReady = "Ready"
