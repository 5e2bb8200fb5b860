package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaxDisks is the limit of the lists of disks that a HostRecord has.
const MaxDisks = 256

// KnownDisk is a disk that an agent or the BMC has once found in a host. It is kept when it is not found any more, so that an erase
// fails that cannot reach it.
type KnownDisk struct {
	DiskInventory `json:",inline"`
	// gone is set when a person has declared that the disk was taken out. It is removed when the disk is found again.
	// +optional
	Gone *DiskGone `json:"gone,omitempty"`
}

// DiskGone is the declaration of a person that a disk was taken out of a host.
type DiskGone struct {
	// at is when the annotation ingot.dev/disk-gone was written, or when it was first observed where the API server does not tell.
	// +required
	At metav1.MicroTime `json:"at"`
	// by is the field manager that wrote the annotation, such as kubectl-annotate. The user is in the audit log of the API server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	By string `json:"by,omitempty"`
}

// DiskEraseMethod is how a disk was erased.
type DiskEraseMethod string

// Methods by which disks are erased.
const (
	// DiskMethodOverwrite is the overwriting of every byte that the disk offers.
	DiskMethodOverwrite DiskEraseMethod = "Overwrite"
	// DiskMethodMetadata is the overwriting of partition tables and signatures.
	DiskMethodMetadata DiskEraseMethod = "Metadata"
	// DiskMethodSanitizeBlock is the erase of all of its flash memory by the disk.
	DiskMethodSanitizeBlock DiskEraseMethod = "SanitizeBlock"
	// DiskMethodSanitizeCrypto is the replacement of the key with which everything on the disk is encrypted.
	DiskMethodSanitizeCrypto DiskEraseMethod = "SanitizeCrypto"
	// DiskMethodSanitizeOverwrite is the overwriting of all of its medium by the disk.
	DiskMethodSanitizeOverwrite DiskEraseMethod = "SanitizeOverwrite"
	// DiskMethodSecureEraseEnhanced is the erase of all of its medium by an ATA disk.
	DiskMethodSecureEraseEnhanced DiskEraseMethod = "SecureEraseEnhanced"
	// DiskMethodSecureErase is the erase of its sectors by an ATA disk.
	DiskMethodSecureErase DiskEraseMethod = "SecureErase"
	// DiskMethodFormatCrypto is the replacement of the key of the disk's blocks.
	DiskMethodFormatCrypto DiskEraseMethod = "FormatCrypto"
	// DiskMethodFormat is the erase of its blocks by the disk.
	DiskMethodFormat DiskEraseMethod = "Format"
	// DiskMethodDiscard is the deallocation of all blocks of a disk that guarantees zeros in their place.
	DiskMethodDiscard DiskEraseMethod = "Discard"
)

// DiskEraseResult is what became of a disk in an erase.
type DiskEraseResult string

// Results of the erase of a disk.
const (
	// DiskErased says that the disk was erased.
	DiskErased DiskEraseResult = "Erased"
	// DiskEraseFailed says that the disk could not be erased.
	DiskEraseFailed DiskEraseResult = "Failed"
	// DiskWasGone says that the disk was not there, and that a person had declared it gone.
	DiskWasGone DiskEraseResult = "Gone"
)

// DiskEvidence says what an erase did to one disk.
type DiskEvidence struct {
	DiskInventory `json:",inline"`
	// method by which the disk was erased; absent when nothing was written:
	//   - Overwrite: every byte that the disk offers was overwritten with zeros.
	//   - Metadata: partition tables and signatures were overwritten with zeros.
	//   - SanitizeBlock: the disk erased all of its flash memory, spare blocks and caches with it (Sanitize).
	//   - SanitizeCrypto: the disk replaced the key with which everything on it is encrypted (Sanitize).
	//   - SanitizeOverwrite: the disk overwrote all of its medium, spare blocks with it (Sanitize).
	//   - SecureEraseEnhanced: the disk erased all of its medium, reallocated sectors with it (ATA Security Erase, enhanced).
	//   - SecureErase: the disk erased the sectors that it offers (ATA Security Erase).
	//   - FormatCrypto: the disk replaced the key of its blocks (NVMe Format).
	//   - Format: the disk erased its blocks (NVMe Format).
	//   - Discard: the disk deallocated every block and guarantees zeros in their place, and every byte was read as zero.
	//
	// +optional
	// +kubebuilder:validation:Enum=Overwrite;Metadata;SanitizeBlock;SanitizeCrypto;SanitizeOverwrite;SecureEraseEnhanced;SecureErase;FormatCrypto;Format;Discard
	Method DiskEraseMethod `json:"method,omitempty"`
	// bytes that were overwritten, or the size of a disk that erased itself.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// result of the erase of this disk:
	//   - Erased: it was erased by the method.
	//   - Failed: it could not be erased, message says why.
	//   - Gone: it was not there, and a person had declared that it was taken out.
	//
	// +required
	// +kubebuilder:validation:Enum=Erased;Failed;Gone
	Result DiskEraseResult `json:"result"`
	// message says why the disk failed, why another method was used than the best, or how an erase by the disk was verified.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
	// gone is the declaration that the disk was taken out.
	// +optional
	Gone *DiskGone `json:"gone,omitempty"`
}

// HostInstalled is what is on a host's disk.
type HostInstalled struct {
	// machineUID for whom it was installed.
	// +required
	MachineUID types.UID `json:"machineUID"`
	// attempt of the Machine.
	// +required
	Attempt int64 `json:"attempt"`
	// revision that was installed.
	// +optional
	Revision string `json:"revision,omitempty"`
	// checksum of the image file.
	// +required
	Checksum string `json:"checksum"`
	// rootDisk that the image was written to; absent when the installer does not tell. The next installation for the same Machine is
	// written to this disk and to no other.
	// +optional
	RootDisk *DiskInventory `json:"rootDisk,omitempty"`
	// at what time.
	// +required
	At metav1.MicroTime `json:"at"`
}

// EraseProof is the proof of the last completed erase.
type EraseProof struct {
	// mode says how much of the disks was erased:
	//   - None: the disks are left as they are.
	//   - Metadata: partition tables and file-system signatures are removed.
	//   - Full: every byte is cleared.
	//
	// +required
	Mode EraseMode `json:"mode"`
	// attempt number of the erase.
	// +required
	Attempt int64 `json:"attempt"`
	// at what time it was complete and the power-off confirmed.
	// +required
	At metav1.MicroTime `json:"at"`
	// channel is how the agent that reports the erase was booted and how it spoke; absent: it is not known, as after an erase by an earlier version:
	//   - VirtualMedia: a CD image for the boot, inserted by a BMC whose certificate was verified; the agent spoke by HTTPS.
	//   - PinnedHTTPS: a URL for the boot, pinned by a BMC whose certificate was verified; firmware and agent spoke by HTTPS.
	//   - VirtualMediaHTTP: VirtualMedia with an agent that spoke by HTTP.
	//   - PinnedHTTP: PinnedHTTPS with firmware or an agent that spoke by HTTP.
	//   - IronicVirtualMedia: a CD image with the token of Ironic's agent, inserted by a BMC whose certificate Ironic verifies.
	//   - UnverifiedBMC: one of those by a BMC whose certificate was not verified.
	//   - IronicNetwork: Ironic's agent after a boot over the network.
	//   - Network: PXE or HTTP boot for whoever has the MAC address.
	//
	// +optional
	Channel AgentChannel `json:"channel,omitempty"`
	// tpm is what the TPM of the server proved of that agent; absent: it is not known, as with a service that installs:
	//   - Listed: it runs on the server whose key is listed.
	//   - Known: it runs on the server whose key was known.
	//   - FirstUse: the key was seen first then.
	//   - Unlisted: the key is not trusted.
	//   - None: nothing, because the server has no TPM 2.0.
	//   - Failed: nothing, because the TPM gave errors or no answer.
	//   - Differs: nothing, because it is another TPM than the one of the host. Such an agent is refused.
	//
	// +optional
	TPM TPMProof `json:"tpm,omitempty"`
	// tenant whose data was erased.
	// +optional
	Tenant string `json:"tenant,omitempty"`
	// disks says what was done to each disk; absent when the installer does not tell.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Disks []DiskEvidence `json:"disks,omitempty"`
}
