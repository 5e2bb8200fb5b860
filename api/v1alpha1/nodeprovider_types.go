package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeProvider's conditions: Ready and, with redfish, BootServiceReachable or, with ironic, InstallerReachable.

// ConditionBootServiceReachable of a NodeProvider with redfish: the manager has asked netboot.address, and this installation's boot service
// answers. It is Unknown where the manager cannot reach the address, as where only the provisioning network can: that is a warning, and
// nothing waits for it. While it is False no Machine claims a host, and no inspection, installation or erase of a host begins.
const ConditionBootServiceReachable = "BootServiceReachable"

// Reasons of NodeProvider's BootServiceReachable condition.
const (
	// ReasonBootServiceAnswers: this installation's boot service answers at the address.
	ReasonBootServiceAnswers = "BootServiceAnswers"
	// ReasonBootServiceUnconfirmed: the manager cannot reach the address. Whether servers can is not known.
	ReasonBootServiceUnconfirmed = "BootServiceUnconfirmed"
	// ReasonBootAddressWrong: something else answers at the address. A Machine that would be installed has the same reason, and a
	// host that would be inspected, installed or erased has an error of it.
	ReasonBootAddressWrong = "BootAddressWrong"
)

// ConditionInstallerReachable of a NodeProvider with ironic: Ironic answers, takes the login and speaks a version that Ingot knows. The reasons of False are
// those of hosts, such as InstallerUnauthorized. Nothing waits for it: hosts report themselves what fails.
const ConditionInstallerReachable = "InstallerReachable"

// ReasonInstallerAnswers of NodeProvider's InstallerReachable condition: the message says with which version, and whether it shows any node to the login.
const ReasonInstallerAnswers = "InstallerAnswers"

// Reasons of NodeProvider's Ready condition. A NodeType that uses the NodeProvider has the same one.
const (
	// ReasonHostNamespaceNotFound: spec.hostNamespace does not exist.
	ReasonHostNamespaceNotFound = "HostNamespaceNotFound"
	// ReasonHostNamespaceTaken: the host namespace belongs to another NodeProvider, or to a baremetal-operator.
	ReasonHostNamespaceTaken = "HostNamespaceTaken"
	// ReasonHostNamespaceDenied: nobody has given Ingot its rights in the host namespace.
	ReasonHostNamespaceDenied = "HostNamespaceDenied"
	// ReasonManagerLimited: the manager has the rights for metal3 NodeProviders alone, and this is another one, whose hosts nobody would drive.
	ReasonManagerLimited = "ManagerLimited"
	// ReasonCABundleInvalid: no certificate of spec.redfish.netboot.caBundle can be read.
	ReasonCABundleInvalid = "CABundleInvalid"
	// ReasonCABundlePartlyInvalid: the NodeProvider is Ready, and one or more certificates of spec.redfish.netboot.caBundle cannot be read. The
	// others are used.
	ReasonCABundlePartlyInvalid = "CABundlePartlyInvalid"
	// ReasonCABundleEnds: the NodeProvider is Ready, and a certificate of spec.redfish.netboot.caBundle has ended or ends within two weeks.
	ReasonCABundleEnds = "CABundleEnds"
)

// NodeProviderSpec says where hosts come from and who installs them.
// +kubebuilder:validation:XValidation:rule="[has(self.redfish), has(self.ironic), has(self.metal3)].filter(x, x).size() == 1",message="set exactly one of redfish, ironic, metal3"
// +kubebuilder:validation:XValidation:rule="self.hostNamespace == oldSelf.hostNamespace",message="hostNamespace is immutable: create a new NodeProvider"
// +kubebuilder:validation:XValidation:rule="has(self.redfish) == has(oldSelf.redfish) && has(self.ironic) == has(oldSelf.ironic) && has(self.metal3) == has(oldSelf.metal3)",message="which of redfish, ironic and metal3 is set is immutable: create a new NodeProvider"
// +kubebuilder:validation:XValidation:rule="!has(self.metal3) || !has(self.erase) || !has(self.erase.onRelease) || self.erase.onRelease != 'Full'",message="erase.onRelease: Full is not possible with metal3, whose automatedCleaningMode knows metadata and disabled only: use Metadata or None, or a redfish provider"
// +kubebuilder:validation:XValidation:rule="has(self.metal3) || !has(self.erase) || !has(self.erase.onRoll) || self.erase.onRoll == 'None'",message="erase.onRoll is possible with metal3 alone: with redfish and ironic a roll writes the image over the root disk and erases no other. Remove it, or set it to None"
// +kubebuilder:validation:XValidation:rule="!has(self.metal3) || !has(self.erase) || !has(self.erase.onRoll) || self.erase.onRoll == 'None' || has(self.erase.onRelease) && self.erase.onRoll == self.erase.onRelease",message="erase.onRoll must be None or what erase.onRelease says: a roll erases no more than a release"
// +kubebuilder:validation:XValidation:rule="!has(self.metal3) || !has(self.strictIdentity) || !self.strictIdentity",message="strictIdentity is not possible with metal3, whose own agent installs: remove it, or use a redfish provider"
type NodeProviderSpec struct {
	// hostNamespace holds the BareMetalHosts and their BMC Secrets; it belongs to this provider alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	HostNamespace string `json:"hostNamespace"`
	// redfish: Ingot itself drives the BMCs and installs over the network.
	// +optional
	Redfish *RedfishProvider `json:"redfish,omitempty"`
	// ironic: an Ironic installs.
	// +optional
	Ironic *IronicProvider `json:"ironic,omitempty"`
	// metal3: a baremetal-operator serves the BareMetalHosts.
	// +optional
	Metal3 *Metal3Provider `json:"metal3,omitempty"`
	// erase is what happens to the disks of a host that is released or rolled.
	// +optional
	// +default={}
	Erase *ErasePolicy `json:"erase,omitempty"`
	// strictIdentity refuses to install or erase a server whose serial number, system UUID or NICs, as the agent on it reads them, differ
	// from the known hardware of the host. Otherwise such a difference is reported and the work goes on. A server without the boot
	// MAC address of the host is always refused. It is not possible with metal3, whose own agent installs.
	// +optional
	StrictIdentity bool `json:"strictIdentity,omitempty"`
	// network is the nodes' network, as the first layer.
	// +optional
	Network *NetworkSpec `json:"network,omitempty"`
	// sshKeys are authorized on every node of this provider.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	SSHKeys []string `json:"sshKeys,omitempty"`
	// containerd is where the nodes of this provider fetch images. A change reaches them with the next revision of their NodeType.
	// +optional
	Containerd *ContainerdSpec `json:"containerd,omitempty"`
	// userData is the first layer of user data, a #cloud-config document.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	UserData string `json:"userData,omitempty"`
	// properties of every node of this provider: vMetal's keys, such as metal3.vcluster.com/network-cidr, templates of user
	// data and network data (ingot.dev/user-data-template, ingot.dev/network-data-template), and values for them under keys
	// of one's own. Those of NodeType and Machine win, key by key.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Properties map[string]string `json:"properties,omitempty"`
}

// RedfishProvider drives BMCs by Redfish and installs by network boot.
// +kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundleSecretRef))",message="insecureSkipVerify: true makes caBundleSecretRef useless: remove one of them"
type RedfishProvider struct {
	// caBundleSecretRef names a Secret in hostNamespace whose ca.crt verifies the BMCs' certificates; absent: the system's roots.
	// +optional
	CABundleSecretRef *LocalReference `json:"caBundleSecretRef,omitempty"`
	// insecureSkipVerify turns verification of the BMCs' certificates off. Whoever is on the BMC network can then read their passwords.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// netboot is how servers reach Ingot's boot service.
	// +required
	Netboot NetbootSpec `json:"netboot"`
	// inspect says who looks at the hardware of a host before it is available, when it is registered and when the annotation inspect.metal3.io asks for
	// it. Absent is BMC.
	//
	//   - BMC: the BMC alone is asked. The agent looks at the server in each installation and each erase, before it writes.
	//   - Agent: after the BMC, the agent is booted once on the server, which must be off and free, and is off again afterwards. What the agent finds
	//     comes before what the BMC said. A host whose disks are not clean is looked at by the agent of its erase.
	//
	// +optional
	// +kubebuilder:validation:Enum=BMC;Agent
	Inspect InventorySource `json:"inspect,omitempty"`
}

// NetbootSpec is how servers reach Ingot's boot service.
type NetbootSpec struct {
	// address of the boot service as servers see it: HOST or HOST:PORT, port 8090 when absent.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z.-]+|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?$')",message="address must be HOST or HOST:PORT, without scheme or path"
	Address string `json:"address"`
	// secureAddress of the boot service's HTTPS as servers see it, which the agent uses: HOST or HOST:PORT. Absent: the host of address, and the port of
	// boot.tls.address in the manager's configuration, which is also the port when there is none here.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z.-]+|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?$')",message="secureAddress must be HOST or HOST:PORT, without scheme or path"
	SecureAddress string `json:"secureAddress,omitempty"`
	// caBundle has certificates in PEM that the agent on a server trusts when it downloads an image, beside those of the installer's image. The
	// manager trusts them too when it asks whether an image is there.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----') && !self.contains('PRIVATE KEY-----')",message="caBundle must be certificates in PEM, and no private key"
	CABundle string `json:"caBundle,omitempty"`
	// ways are how a server may boot Ingot's agent, in the order of preference; absent: VirtualMedia, PinnedHTTP, Network, the first two where the boot service
	// makes images (boot.efiStub of the manager's configuration). An erase after a boot by Network lets no host go to another tenant. The next way is used where the BMC cannot do the first, or could
	// not fetch the medium of VirtualMedia for two minutes, which the HostRecord then reports as BootWayRefused, and after two boots in a row in which no agent
	// came up (BootWaySilent). An attempt that follows a success begins with the first way.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Ways []BootWay `json:"ways,omitempty"`
	// secureBoot says what is done with a server whose Secure Boot is on. Absent is Refuse.
	//
	//   - Refuse: it is not powered on, and its host says SecureBootOn, because iPXE and boot media are not signed.
	//   - Signed: it is booted, because what the provisioning network serves it is signed by keys that its firmware has.
	//
	// +optional
	SecureBoot SecureBootPolicy `json:"secureBoot,omitempty"`
	// network is how a server brings up its network while Ingot's agent works on it. Absent: an untagged boot NIC, and DHCP or router
	// advertisements. The node's own network is spec.network.
	// +optional
	Network *NetbootNetworkSpec `json:"network,omitempty"`
}

// SecureBootPolicy is what is done with servers whose Secure Boot is on.
// +kubebuilder:validation:Enum=Refuse;Signed
type SecureBootPolicy string

// Policies for servers whose Secure Boot is on.
const (
	// SecureBootRefuse does not power them on.
	SecureBootRefuse SecureBootPolicy = "Refuse"
	// SecureBootSigned boots them, because what they boot is signed.
	SecureBootSigned SecureBootPolicy = "Signed"
)

// BootWay is a way to boot Ingot's agent on a server:
//   - Network: PXE or HTTP boot of the boot NIC. Who knows the MAC address and is on that network can get the token of an attempt.
//   - PinnedHTTP: UEFI HTTP boot from a URL for each boot that the BMC pins (ComputerSystem.Boot.HttpBootUri). The URL is a secret, so that who knows the MAC
//     address gets no token. It is one of HTTPS where the BMC takes the authority of the boot service (Boot.Certificates), which BootNotEncrypted reports
//     where it does not. The firmware needs DHCP for an address. Secure Boot refuses it, because the program is not signed.
//   - VirtualMedia: a CD image for each boot, which the BMC reads from the boot service. It needs no DHCP where network is set, and gives no
//     token to who knows the MAC address. Secure Boot refuses it, because the image is not signed.
//
// +kubebuilder:validation:Enum=Network;PinnedHTTP;VirtualMedia
type BootWay string

// Ways to boot the agent.
const (
	// BootWayNetwork is PXE or HTTP boot.
	BootWayNetwork BootWay = "Network"
	// BootWayPinnedHTTP is UEFI HTTP boot from a URL that the BMC pins.
	BootWayPinnedHTTP BootWay = "PinnedHTTP"
	// BootWayVirtualMedia is a CD image that the BMC presents to the server.
	BootWayVirtualMedia BootWay = "VirtualMedia"
)

// NetbootNetworkSpec is the provisioning network as the agent on a server uses it. Firmware that boots over the network does so before, with its own
// settings.
type NetbootNetworkSpec struct {
	// vlan is the tag of the provisioning network at the servers' switch ports; absent: it is untagged there.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`
	// bond bonds the boot NIC with others; absent: the boot NIC is used alone.
	// +optional
	Bond *NetbootBondSpec `json:"bond,omitempty"`
	// cidr is the gateway's address with the prefix length, 10.20.4.1/22. A host's own address is its annotation ingot.dev/boot-ip-address or, where
	// that is missing, its annotation ingot.dev/ip-address if it is on this network; without either the server uses DHCP.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr must be the gateway's address with a prefix length, such as 10.20.4.1/22"
	CIDR string `json:"cidr,omitempty"`
	// dnsServers are the resolvers' addresses, instead of those that DHCP names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, isIP(s))",message="dnsServers must be IP addresses"
	DNSServers []string `json:"dnsServers,omitempty"`
}

// NetbootBondSpec is a bond of a server's NICs.
type NetbootBondSpec struct {
	// mode is the kernel's name of the bond's mode:
	//   - active-backup: one NIC is used at a time; the switch needs no configuration.
	//   - 802.3ad: LACP, which the switch ports must have too.
	//
	// Its members are the ports of the card that the server boots from, or those of the host's annotation ingot.dev/bond-mac-addresses.
	// +required
	Mode BondMode `json:"mode"`
}

// BondMode is a mode of a bond.
// +kubebuilder:validation:Enum=active-backup;"802.3ad"
type BondMode string

// Modes of a bond.
const (
	// BondActiveBackup uses one NIC at a time.
	BondActiveBackup BondMode = "active-backup"
	// BondLACP is LACP.
	BondLACP BondMode = "802.3ad"
)

// Metal3Provider has nothing to say: the baremetal-operator is configured elsewhere.
type Metal3Provider struct{}

// ErasePolicy is what happens to the disks of a host that is released or rolled.
type ErasePolicy struct {
	// onRelease is how much is erased before a released host is available again:
	//   - None: the disks are left as they are.
	//   - Metadata: partition tables and file-system signatures are removed.
	//   - Full: every byte is cleared.
	//
	// With metal3, a host whose own spec.automatedCleaningMode is disabled is not erased, whatever is set here: it stays with its last tenant. None disables the
	// cleaning of every host while a Machine has it; the host gets its own mode back with its return.
	// +optional
	// +default="Metadata"
	OnRelease EraseMode `json:"onRelease,omitempty"`
	// onRoll is how much is erased when a node is rolled to its next revision, before the next image is installed; absent: None. It is None or what
	// onRelease says, and only with metal3 something else than None. Metadata has the baremetal-operator clean all disks of the host in each roll, so that
	// nothing that the node kept on them is left. None keeps what is on the disks to which no image is written.
	//   - None: the disks are left as they are.
	//   - Metadata: partition tables and file-system signatures are removed.
	//   - Full: not possible.
	//
	// +optional
	OnRoll EraseMode `json:"onRoll,omitempty"`
	// allowMetadataBetweenTenants lets a host go from one TenantCluster to another after a metadata erase. Without it only a
	// full erase makes that possible.
	// +optional
	AllowMetadataBetweenTenants bool `json:"allowMetadataBetweenTenants,omitempty"`
	// allowForgeableEraseBetweenTenants lets a host go from one TenantCluster to another after an erase that a neighbour on the provisioning network can
	// have reported in place of the server: the agent was booted over the network by a MAC address, or by a BMC whose certificate is not verified. The
	// host may then have the data of its last tenant. Without it only an erase through a channel that no neighbour can use makes that possible.
	// +optional
	AllowForgeableEraseBetweenTenants bool `json:"allowForgeableEraseBetweenTenants,omitempty"`
}

// NetworkSpec is a network in gateway form.
type NetworkSpec struct {
	// cidr is the gateway's address with the prefix length, 10.20.4.1/22. A host's own address is its annotation
	// ingot.dev/ip-address; without one the node uses DHCP.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr must be the gateway's address with a prefix length, such as 10.20.4.1/22"
	CIDR string `json:"cidr,omitempty"`
	// dnsServers are the resolvers' addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, isIP(s))",message="dnsServers must be IP addresses"
	DNSServers []string `json:"dnsServers,omitempty"`
}

// NodeProviderStatus says whether the host namespace is the NodeProvider's.
type NodeProviderStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// usedBy says what depends on it. It cannot be deleted before that is gone; see config/policy/README.md.
	// +optional
	UsedBy *UsedBy `json:"usedBy,omitempty"`
	// bootCheckedAt is when the manager last asked netboot.address and netboot.secureAddress whether this installation's boot service answers at them.
	// +optional
	BootCheckedAt *metav1.Time `json:"bootCheckedAt,omitempty"`
	// bootCheckedAddress is what it asked.
	// +optional
	BootCheckedAddress string `json:"bootCheckedAddress,omitempty"`
	// conditions: Ready and, with redfish, BootServiceReachable or, with ironic, InstallerReachable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeProvider says where hosts come from and who installs them.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nprov,categories=ingot
// +kubebuilder:printcolumn:name="Hosts-In",type=string,JSONPath=".spec.hostNamespace"
// +kubebuilder:printcolumn:name="Erase",type=string,JSONPath=".spec.erase.onRelease"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type NodeProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeProviderSpec `json:"spec"`
	// +optional
	Status NodeProviderStatus `json:"status,omitempty"`
}

// BootProblem returns what is wrong with the address that servers boot from; empty: nothing, or nothing that is known.
func (p *NodeProvider) BootProblem() string {
	if c := meta.FindStatusCondition(p.Status.Conditions, ConditionBootServiceReachable); c != nil && c.Status == metav1.ConditionFalse {
		return "NodeProvider " + p.Name + ": " + c.Message
	}
	return ""
}

// NodeProviderList is a list of NodeProviders.
// +kubebuilder:object:root=true
type NodeProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeProvider `json:"items"`
}
