package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OSImage's conditions: Ready, ImageReachable.

// ConditionImageReachable of an OSImage: the manager has asked spec.url, and the file is there. It is Unknown where the manager reaches no server
// at that address, as where only the provisioning network does: that is a warning, and nothing waits for it. While it is False no installation
// begins.
const ConditionImageReachable = "ImageReachable"

// Reasons of OSImage's ImageReachable condition, beside ImageUnreachable.
const (
	// ReasonImageAnswers: the file is there.
	ReasonImageAnswers = "ImageAnswers"
	// ReasonImageUnconfirmed: the manager reaches no server at the address. Whether servers do is not known.
	ReasonImageUnconfirmed = "ImageUnconfirmed"
	// ReasonImageCertificateUntrusted: the manager does not know who signed the certificate of the server. Whether the installer's image does is
	// not known, so this is a warning.
	ReasonImageCertificateUntrusted = "ImageCertificateUntrusted"
	// ReasonImageCertificateInvalid: the certificate of the server is of another name, or has ended. It is of Ready too.
	ReasonImageCertificateInvalid = "ImageCertificateInvalid"
	// ReasonImageSizeDiffers: the file has another size than before, so that its digest cannot be the declared one. It is of Ready too.
	ReasonImageSizeDiffers = "ImageSizeDiffers"
)

// Reasons of OSImage's Ready condition.
const (
	// ReasonImageUnreachable: the server of spec.url or of the checksum file does not answer, or answers with an error.
	ReasonImageUnreachable = "ImageUnreachable"
	// ReasonChecksumNotFound: the checksum file has no line for the image's file name.
	ReasonChecksumNotFound = "ChecksumNotFound"
	// ReasonChecksumInvalid: what the checksum file says is not a sha256 or sha512 digest.
	ReasonChecksumInvalid = "ChecksumInvalid"
	// ReasonSizeUnknown: the server does not say how large the image is; it can be used, without a percentage of progress.
	ReasonSizeUnknown = "SizeUnknown"
)

// UserDataKind is how an image reads its user data.
// +kubebuilder:validation:Enum=CloudInit;Ignition
type UserDataKind string

// Kinds of user data.
const (
	UserDataCloudInit UserDataKind = "CloudInit"
	UserDataIgnition  UserDataKind = "Ignition"
)

// OSImageSpec is an image and what is baked into it. It never changes.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: create a new OSImage and point the NodeType's osImageRef at it"
// +kubebuilder:validation:XValidation:rule="!has(self.ignitionPlatform) || self.userData == 'Ignition'",message="ignitionPlatform is only for userData: Ignition; remove it"
// +kubebuilder:validation:XValidation:rule="self.userData != 'Ignition' || (has(self.ignitionPlatform) && self.ignitionPlatform == 'openstack')",message="userData: Ignition needs ignitionPlatform: openstack, the platform that reads a config drive"
type OSImageSpec struct {
	// displayName is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// url of the image file, http or https.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="url must begin with http:// or https://"
	URL string `json:"url"`
	// checksum of the file as served at url: sha256:HEX, sha512:HEX, or the URL of a SHA256SUMS or SHA512SUMS file, which is
	// read once and pinned in status.checksum.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$') || self.matches('^sha512:[0-9a-f]{128}$') || self.startsWith('http://') || self.startsWith('https://')",message="checksum must be sha256: and 64, or sha512: and 128, lower-case hex digits, or the http(s) URL of a checksum file"
	Checksum string `json:"checksum"`
	// format of the file:
	//   - raw: not compressed.
	//   - raw.gz: a raw image compressed with gzip.
	//   - raw.zst: a raw image compressed with Zstandard.
	//   - qcow2: the format of QEMU's copy-on-write images.
	//   - live-iso: a bootable ISO that servers run from by virtual media; nothing is written to a disk.
	//     Only for ironic and metal3. Ironic verifies no checksum of it. What a node of it has written is gone after a reboot, and it
	//     does not join again by itself.
	//
	// +required
	Format ImageFormat `json:"format"`
	// architecture that the image runs on:
	//   - amd64: 64-bit x86.
	//   - arm64: 64-bit Arm.
	//
	// +optional
	// +default="amd64"
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`
	// userData is how the image reads its user data:
	//   - CloudInit: by cloud-init, as a #cloud-config document.
	//   - Ignition: by Ignition, as an Ignition configuration.
	//
	// +optional
	// +default="CloudInit"
	UserData UserDataKind `json:"userData,omitempty"`
	// ignitionPlatform is the image's Ignition platform id.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	IgnitionPlatform string `json:"ignitionPlatform,omitempty"`
	// os is the operating system.
	// +required
	OS OSImageOS `json:"os"`
	// kernelArguments are baked in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	KernelArguments []string `json:"kernelArguments,omitempty"`
	// software that is baked in.
	// +required
	Software OSImageSoftware `json:"software"`
}

// OSImageOS is an operating system as its os-release file names it.
type OSImageOS struct {
	// id as in os-release: debian, ubuntu, flatcar.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
	// version as VERSION_ID in os-release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version"`
	// kernel is the release that uname -r prints, or its leading numbers.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Kernel string `json:"kernel,omitempty"`
}

// OSImageSoftware is the software baked into an image. Versions are as the programs print them, without a leading v.
type OSImageSoftware struct {
	// gpuDriver is the driver; absent: none is baked in.
	// +optional
	GPUDriver *GPUDriverSoftware `json:"gpuDriver,omitempty"`
	// containerd version.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Containerd string `json:"containerd,omitempty"`
	// kubelet version; must not be newer than the tenant's API server.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+([-+].*)?$')",message="kubelet must be a version such as 1.37.0, without a leading v"
	// +kubebuilder:validation:MaxLength=64
	Kubelet string `json:"kubelet"`
	// containerToolkit is the version of the vendor's container toolkit.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ContainerToolkit string `json:"containerToolkit,omitempty"`
	// migParted is the version of NVIDIA's mig-parted, which partitions GPUs before kubelet starts.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MIGParted string `json:"migParted,omitempty"`
	// fabricManager is the version of NVIDIA's fabric manager, which must be the driver's.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FabricManager string `json:"fabricManager,omitempty"`
	// imex is the version of NVIDIA's IMEX service, which must be the driver's.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	IMEX string `json:"imex,omitempty"`
	// vgpuDeviceManager is the version of nvidia-vgpu-dm, which makes mediated devices before kubelet starts.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	VGPUDeviceManager string `json:"vgpuDeviceManager,omitempty"`
}

// GPUDriverSoftware is a GPU driver.
type GPUDriverSoftware struct {
	// vendor of the GPUs:
	//   - nvidia: GPUs of NVIDIA.
	//   - amd: GPUs of AMD.
	//   - generic: any other accelerator.
	//
	// +required
	Vendor GPUVendor `json:"vendor"`
	// version of the driver.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version"`
	// kernelModule is the kind of NVIDIA's kernel modules:
	//   - Open: the open kernel modules.
	//   - Proprietary: the proprietary kernel modules.
	//
	// +optional
	// +kubebuilder:validation:Enum=Open;Proprietary
	KernelModule string `json:"kernelModule,omitempty"`
	// kind of driver:
	//   - GPU: the driver of whole GPUs and of MIG instances. This is the default.
	//   - VGPUManager: the driver of hosts of virtual GPUs.
	//   - VGPUGuest: the driver of guests with virtual GPUs.
	//
	// +optional
	// +kubebuilder:validation:Enum=GPU;VGPUManager;VGPUGuest
	Kind string `json:"kind,omitempty"`
}

// OSImageStatus is what was found at the image's URL.
type OSImageStatus struct {
	// checksum is the digest in use: spec.checksum, or what the checksum file said when it was read the first time.
	// +optional
	Checksum string `json:"checksum,omitempty"`
	// sizeBytes of the file as served; absent when the server does not say.
	// +optional
	SizeBytes *int64 `json:"sizeBytes,omitempty"`
	// checkedAt is when the URL was asked last.
	// +optional
	CheckedAt *metav1.Time `json:"checkedAt,omitempty"`
	// usedBy says what depends on it. It cannot be deleted before that is gone; see config/policy/README.md.
	// +optional
	UsedBy *UsedBy `json:"usedBy,omitempty"`
	// conditions: Ready, ImageReachable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OSImage is an immutable, digest-pinned image and what is baked into it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=osi,categories=ingot
// +kubebuilder:printcolumn:name="OS",type=string,JSONPath=".spec.os.id"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".spec.os.version"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=".spec.software.gpuDriver.version"
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=".spec.format"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=".status.sizeBytes"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type OSImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec OSImageSpec `json:"spec"`
	// +optional
	Status OSImageStatus `json:"status,omitempty"`
}

// OSImageList is a list of OSImages.
// +kubebuilder:object:root=true
type OSImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OSImage `json:"items"`
}

// ExactImage is an image as the installer must write it.
type ExactImage struct {
	// url of the file.
	// +required
	URL string `json:"url"`
	// checksum of the file as served: sha256:HEX or sha512:HEX.
	// +required
	Checksum string `json:"checksum"`
	// format of the file:
	//   - raw: not compressed.
	//   - raw.gz: a raw image compressed with gzip.
	//   - raw.zst: a raw image compressed with Zstandard.
	//   - qcow2: the format of QEMU's copy-on-write images.
	//   - live-iso: a bootable ISO that servers run from by virtual media; nothing is written to a disk.
	//
	// +required
	Format ImageFormat `json:"format"`
	// architecture of the processors that the image runs on; absent: amd64.
	//   - amd64: 64-bit x86.
	//   - arm64: 64-bit Arm.
	//
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`
}
