package validate

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// checkHostNetworks checks that the hosts which a NodeType selects can have the network that their annotations and the NodeType describe.
func (v *validator) checkHostNetworks(in feasibility.Inputs, plan v1alpha1.NodePlan) {
	selector, err := metav1.LabelSelectorAsSelector(&in.NodeType.Spec.HostSelector)
	if err != nil || in.Image == nil || in.Provider == nil {
		return
	}
	for _, h := range v.hosts {
		if h.object.Namespace != in.Provider.Spec.HostNamespace || !selector.Matches(labels.Set(h.object.Labels)) {
			continue
		}
		documents := in.Documents(plan)
		documents.Host = cloudinit.HostOf(h.object.Name, h.object.Spec.BootMACAddress, h.object.Labels, h.object.Annotations)
		var invalid *network.Invalid
		if _, err := cloudinit.NetworkConfig(documents); errors.As(err, &invalid) {
			v.add(h.NewFinding("metadata.annotations", "host/network", "as NodeType %s of NodeProvider %s: %v", in.NodeType.Name, in.Provider.Name, invalid))
		}
	}
}

// checkAddresses finds hosts that share an address or a NIC. With one MAC address for two hosts the boot service could hand the image of
// one Machine to the server of another.
func (v *validator) checkAddresses() {
	seen := map[key]string{}
	for _, h := range v.hosts {
		host := cloudinit.HostOf(h.object.Name, h.object.Spec.BootMACAddress, nil, h.object.Annotations)
		address, _, _ := strings.Cut(host.IPAddress, "/")
		for _, one := range []struct{ field, value string }{{"metadata.annotations", address}, {"spec.bootMACAddress", strings.ToLower(host.BootMAC)}} {
			if one.value == "" {
				continue
			}
			at := key{kind: one.field, namespace: h.object.Namespace, name: one.value}
			if one.field == "spec.bootMACAddress" {
				at.namespace = "" // the boot service finds a host by its MAC address in all namespaces
			}
			if other := seen[at]; other != "" {
				v.add(h.NewFinding(one.field, "host/address-twice", "%s is that of BareMetalHost %s too: correct one of them", one.value, other))
				continue
			}
			seen[at] = h.object.Name
		}
	}
}

// checkServers finds hosts whose BMC is that of another host, in any namespace and spelling. Nothing would be done with either of them.
func (v *validator) checkServers() {
	servers := make([]sameserver.Host, len(v.hosts))
	for i := range v.hosts {
		servers[i] = sameserver.HostOf(&v.hosts[i].object, nil)
		servers[i].BootMAC = "" // checkAddresses finds these
	}
	conflicts := sameserver.ConflictsOfAll(servers)
	for i, h := range v.hosts {
		if found := conflicts[servers[i].FullName()]; len(found) > 0 {
			v.add(h.NewFinding("spec.bmc.address", "host/same-server", "%s, so both are one server: correct the address, or remove one of them", sameserver.Describe(found)))
		}
	}
}
