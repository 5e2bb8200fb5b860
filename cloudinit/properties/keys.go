package properties

// Keys that mean something.
const (
	// UserData is the last layer of user data.
	UserData = "vcluster.com/user-data"
	// UserDataTemplate renders to that layer, where UserData is not set.
	UserDataTemplate = "ingot.dev/user-data-template"
	// SSHKeys are public keys, one a line, beside those of the specs.
	SSHKeys = "vcluster.com/ssh-keys"
	// NetworkData is an OpenStack network_data document, in place of everything else that is said of the network.
	NetworkData = "metal3.vcluster.com/network-data"
	// NetworkDataTemplate renders to it, where NetworkData is not set.
	NetworkDataTemplate = "ingot.dev/network-data-template"
	// NetworkCIDR is the gateway's address with the prefix length.
	NetworkCIDR = "metal3.vcluster.com/network-cidr"
	// NetworkIPRange is where the hosts' addresses must lie: IP1-IP2,IP3-IP4.
	NetworkIPRange = "metal3.vcluster.com/network-ip-range"
	// DNSServers are the resolvers, separated by commas.
	DNSServers = "metal3.vcluster.com/dns-servers"
)

// domains whose keys are Ingot's to understand.
var domains = []string{"vcluster.com/", "metal3.vcluster.com/", "ingot.dev/"}

// keys that are understood, and which of them are templates.
var keys = map[string]bool{
	UserData: false, UserDataTemplate: true, SSHKeys: false, NetworkData: false, NetworkDataTemplate: true,
	NetworkCIDR: false, NetworkIPRange: false, DNSServers: false,
}

// infrastructure are keys that say what the network is, which a tenant may not.
var infrastructure = []string{NetworkData, NetworkCIDR, NetworkIPRange}

// elsewhere are vMetal's keys for which Ingot has a field, and where it is.
var elsewhere = map[string]string{
	"vcluster.com/os-image":                     "set osImageRef of the NodeType",
	"vcluster.com/user-data-template-config":    "there is no MachineConfigTemplate here: put its cloudInitTemplate into the property " + UserDataTemplate,
	"vcluster.com/network-data-template-config": "there is no MachineConfigTemplate here: put its networkDataTemplate into the property " + NetworkDataTemplate,
	"vcluster.com/network-environment":          "there is no NodeEnvironment here: say what the network is with network of the NodeProvider",
	"metal3.vcluster.com/image-url":             "set url of an OSImage, and osImageRef of the NodeType",
	"metal3.vcluster.com/image-checksum":        "set checksum of an OSImage, and osImageRef of the NodeType",
	"metal3.vcluster.com/image-checksum-type":   "it is part of checksum of an OSImage: remove it",
	"metal3.vcluster.com/server-name":           "set hostName of the Machine",
}
