package v1alpha1

// Containerds of the check, as they are reported.
const (
	// ContainerdOK: containerd has all that is needed.
	ContainerdOK = "ok"
	// ContainerdImports: the image's configuration does not import the directory of the drop-in.
	ContainerdImports = "imports"
	// ContainerdVersion: the image's configuration is of another version than the drop-in, which was taken away.
	ContainerdVersion = "config-version"
	// ContainerdInvalid: containerd does not understand its configuration. With the drop-in it would not start, so the drop-in was taken away.
	ContainerdInvalid = "config-invalid"
	// ContainerdCDI: containerd does not inject devices by CDI.
	ContainerdCDI = "cdi"
	// ContainerdRuntime: containerd does not have NVIDIA's runtime, or the program of it is missing.
	ContainerdRuntime = "nvidia-runtime"
	// ContainerdEnvironment: NVIDIA's container toolkit gives devices to containers that are not privileged for their environment or their volumes.
	ContainerdEnvironment = "nvidia-environment"
	// ContainerdMirrors: containerd does not read the mirrors of registries.
	ContainerdMirrors = "registry-mirrors"
	// ContainerdSandbox: containerd uses another sandbox image.
	ContainerdSandbox = "sandbox-image"
)

// ContainerdSpec is what containerd on a node takes from its site: where it fetches images.
type ContainerdSpec struct {
	// registryMirrors are where images are fetched from instead of their registry. When no mirror has an image, the registry is asked. The nodes need
	// no credentials for a mirror.
	// +optional
	// +listType=map
	// +listMapKey=registry
	// +kubebuilder:validation:MaxItems=32
	RegistryMirrors []RegistryMirror `json:"registryMirrors,omitempty"`
	// sandboxImage is the image of the container that holds a pod's namespaces, such as registry.example.com/pause:3.10.1; absent: that of the image's
	// containerd, which fetches it from registry.k8s.io.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9._-]+)+(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?$')",message="sandboxImage must be an image with its registry, such as registry.example.com/pause:3.10.1"
	SandboxImage string `json:"sandboxImage,omitempty"`
}

// RegistryMirror is where the images of one registry are fetched from.
type RegistryMirror struct {
	// registry as the names of images begin: docker.io, registry.k8s.io, HOST:PORT; _default is every registry that has no mirror of its own.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^(_default|[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?)$')",message="registry must be HOST or HOST:PORT as the names of images begin, such as docker.io, or _default"
	Registry string `json:"registry"`
	// endpoints are the mirrors in the order in which they are asked: http or https, and HOST or HOST:PORT. One with a path, such as
	// https://registry.example.com/v2/docker-hub, is taken as the whole path of the registry's API there.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.matches('^https?://([A-Za-z0-9.-]+|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$'))",message="endpoints must be http or https URLs such as https://registry.example.com, without user, password or query"
	Endpoints []string `json:"endpoints"`
	// caBundle has certificates in PEM that verify the endpoints; absent: those of the image.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self == '' || self.contains('-----BEGIN CERTIFICATE-----') && !self.contains('PRIVATE KEY-----')",message="caBundle must be certificates in PEM, and no private key"
	CABundle string `json:"caBundle,omitempty"`
}
