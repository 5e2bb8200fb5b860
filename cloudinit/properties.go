package cloudinit

import (
	"net/netip"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

// withContainerd returns the input with containerd's files and units among those of the plan.
func withContainerd(in Input) Input {
	in.Plan.Files = slices.Concat(in.Plan.Files, containerd.Files(in.Containerd))
	in.Plan.Units = slices.Concat(in.Plan.Units, containerd.Units(in.Containerd))
	in.Containerd = containerd.Node{}
	return in
}

// resolve returns the input with the values of its properties, and without the properties.
func resolve(in Input) (Input, error) {
	in = withContainerd(in)
	if len(in.Properties) == 0 {
		return in, nil
	}
	resolved, err := properties.Resolve(in.Properties)
	if err != nil {
		return in, err
	}
	in.Properties = nil
	in.SSHKeys = v1alpha1.AuthorizedKeys(in.SSHKeys, resolved.SSHKeys)
	in.Network = overrideNetwork(in.Network, resolved)
	if resolved.Ranges != "" {
		in.Ranges = resolved.Ranges
	}
	userData, err := renderText(in, resolved, resolved.UserData, resolved.UserDataTemplate)
	if err != nil {
		return in, err
	}
	networkData, err := renderText(in, resolved, resolved.NetworkData, resolved.NetworkDataTemplate)
	if err != nil {
		return in, err
	}
	if userData.Text != "" {
		in.Layers = append(slices.Clone(in.Layers), layer(userData))
	}
	if networkData.Text != "" {
		in.NetworkData = layer(networkData)
	}
	return in, nil
}

func layer(t properties.Text) Layer { return Layer{Name: t.Level, Property: t.Key, Text: t.Text} }

// renderText returns the document when there is one, or else the text that its template renders.
func renderText(in Input, resolved properties.Resolved, document, template properties.Text) (properties.Text, error) {
	if document.Text != "" || template.Template == nil {
		return document, nil
	}
	values, err := templateValues(in, resolved.Values)
	if err != nil {
		return document, err
	}
	text, err := template.Template.Render(values)
	return properties.Text{Level: template.Level, Key: template.Key, Text: text}, err
}

func overrideNetwork(spec *v1alpha1.NetworkSpec, resolved properties.Resolved) *v1alpha1.NetworkSpec {
	var out v1alpha1.NetworkSpec
	if spec != nil {
		out = *spec
	}
	if resolved.CIDR != "" {
		out.CIDR = resolved.CIDR
	}
	if len(resolved.Resolvers) > 0 {
		out.DNSServers = resolved.Resolvers
	}
	return &out
}

// templateValues returns the values of templates, under the names that vMetal uses. NodeClaim is the Machine. Values without a
// counterpart in Ingot are left out, and so are Secrets.
func templateValues(in Input, free map[string]string) (map[string]any, error) {
	address, prefix, gateway := "", 0, ""
	b := bootNetwork(in)
	if of, err := netip.ParsePrefix(b.CIDR); err == nil {
		prefix, gateway = of.Bits(), of.Addr().String()
	}
	if b.Address != "" {
		own, via, err := b.AddressAndGateway()
		if err != nil {
			return nil, err
		}
		address, prefix = own.Addr().String(), own.Bits()
		if via.IsValid() {
			gateway = via.String()
		}
	}
	machine := object(in.Machine.Name, in.Machine.Namespace, nil, nil)
	host := object(in.Host.Name, "", in.Host.Labels, in.Host.Annotations)
	host["spec"] = map[string]any{"bootMACAddress": in.Host.BootMAC}
	return map[string]any{
		"NodeClaim": machine, "Machine": machine, "BareMetalHost": host,
		"Project":    map[string]any{"Name": in.Machine.Namespace, "name": in.Machine.Namespace},
		"Properties": anyValues(free), "SSHKeys": slices.Clone(in.SSHKeys),
		"AllocatedIP": address, "PrefixLength": prefix, "Gateway": gateway,
	}, nil
}

// object returns an object for templates. They can refer to its metadata as fields of Go or as members of YAML: .Name or
// .metadata.name.
func object(name, namespace string, labels, annotations map[string]string) map[string]any {
	return map[string]any{
		"Name": name, "Namespace": namespace, "Labels": anyValues(labels), "Annotations": anyValues(annotations),
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": anyValues(labels), "annotations": anyValues(annotations)},
	}
}

func anyValues(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
