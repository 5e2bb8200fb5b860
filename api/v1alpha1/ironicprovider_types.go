package v1alpha1

// IronicProvider is an Ironic that installs.
// +kubebuilder:validation:XValidation:rule="!has(self.keystoneURL) || has(self.credentialsSecretRef)",message="keystoneURL needs credentialsSecretRef: a Secret in hostNamespace with applicationCredentialID and applicationCredentialSecret"
// +kubebuilder:validation:XValidation:rule="has(self.deployKernel) == has(self.deployRamdisk)",message="set both of deployKernel and deployRamdisk, or neither"
type IronicProvider struct {
	// endpoint of Ironic's API, with or without /v1.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="endpoint must begin with http:// or https://"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="endpoint must have no user and no password, which everybody who may read NodeProviders would see: put them into the Secret of credentialsSecretRef"
	Endpoint string `json:"endpoint"`
	// credentialsSecretRef names a Secret in hostNamespace; absent: Ironic asks for no authentication. The Secret has username and password, for HTTP basic
	// authentication, or with keystoneURL applicationCredentialID and applicationCredentialSecret. It is read again at least every half minute.
	// +optional
	CredentialsSecretRef *LocalReference `json:"credentialsSecretRef,omitempty"`
	// keystoneURL is the identity service that knows the application credential of credentialsSecretRef, such as https://keystone.example.com/v3.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="keystoneURL must begin with http:// or https://"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="keystoneURL must have no user and no password"
	KeystoneURL string `json:"keystoneURL,omitempty"`
	// caBundle has certificates in PEM that verify Ironic and Keystone; absent: the system's roots.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----') && !self.contains('PRIVATE KEY-----')",message="caBundle must be certificates in PEM, and no private key"
	CABundle string `json:"caBundle,omitempty"`
	// hardwareType is Ironic's driver of the nodes that Ingot creates there; absent: redfish or ipmi, by the scheme of the host's spec.bmc.address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	HardwareType string `json:"hardwareType,omitempty"`
	// bootInterface of the nodes that Ingot creates, such as ipxe or redfish-virtual-media; absent: Ironic's default for the hardware type.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootInterface string `json:"bootInterface,omitempty"`
	// deployInterface of the nodes that Ingot creates, such as direct; absent: Ironic's default for the hardware type.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'ramdisk'",message="deployInterface must be one that writes disks, such as direct: an OSImage of the format live-iso selects ramdisk for its own installations"
	DeployInterface string `json:"deployInterface,omitempty"`
	// networkInterface of the nodes that Ingot creates, such as noop; absent: Ironic's default for the hardware type. Ingot attaches no ports of Neutron to nodes, so
	// the interfaces flat and neutron need somebody who does.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NetworkInterface string `json:"networkInterface,omitempty"`
	// deployKernel is the URL of the kernel of Ironic's agent; absent: Ironic's own configuration has it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	DeployKernel string `json:"deployKernel,omitempty"`
	// deployRamdisk is the URL of the ramdisk of Ironic's agent.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	DeployRamdisk string `json:"deployRamdisk,omitempty"`
	// bmcCAPath is the file or directory, on the machines of Ironic's conductors, with the certificates that verify the BMCs of the nodes; absent: the roots of
	// those machines.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="bmcCAPath must be an absolute path on the machines of Ironic's conductors"
	BMCCAPath string `json:"bmcCAPath,omitempty"`
	// limits are how many hosts Ironic may work on at the same time. The others wait in a queue, and none is refused.
	// +optional
	// +default={}
	Limits IronicLimits `json:"limits,omitempty"`
}

// IronicLimits are how many hosts an Ironic may work on at the same time. They must not be above those of its conductors.
type IronicLimits struct {
	// deploys is for installations: max_concurrent_deploy of Ironic's conductors.
	// +optional
	// +default=250
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Deploys int32 `json:"deploys,omitempty"`
	// cleans is for erases: max_concurrent_clean of Ironic's conductors.
	// +optional
	// +default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Cleans int32 `json:"cleans,omitempty"`
}
