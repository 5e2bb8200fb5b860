package cloudinit

import (
	"net/netip"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

// resolve puts what the properties say into the input, which has none afterwards.
func resolve(in Input) (Input, error) {
	if len(in.Properties) == 0 {
		return in, nil
	}
	said, err := properties.Resolve(in.Properties)
	if err != nil {
		return in, err
	}
	in.Properties = nil
	in.SSHKeys = withoutRepeats(in.SSHKeys, said.SSHKeys)
	in.Network = overridden(in.Network, said)
	if said.Ranges != "" {
		in.Ranges = said.Ranges
	}
	userData, err := rendered(in, said, said.UserData, said.UserDataTemplate)
	if err != nil {
		return in, err
	}
	networkData, err := rendered(in, said, said.NetworkData, said.NetworkDataTemplate)
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

// rendered is the document itself where there is one, else what its template renders to.
func rendered(in Input, said properties.Resolved, document, template properties.Text) (properties.Text, error) {
	if document.Text != "" || template.Template == nil {
		return document, nil
	}
	values, err := templateValues(in, said.Values)
	if err != nil {
		return document, err
	}
	text, err := template.Template.Render(values)
	return properties.Text{Level: template.Level, Key: template.Key, Text: text}, err
}

func withoutRepeats(first, second []string) []string {
	out := slices.Clone(first)
	for _, s := range second {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func overridden(spec *v1alpha1.NetworkSpec, said properties.Resolved) *v1alpha1.NetworkSpec {
	var out v1alpha1.NetworkSpec
	if spec != nil {
		out = *spec
	}
	if said.CIDR != "" {
		out.CIDR = said.CIDR
	}
	if len(said.Resolvers) > 0 {
		out.DNSServers = said.Resolvers
	}
	return &out
}

// templateValues are vMetal's .Values. Of its objects there is what Ingot has of the same meaning; NodeClaim is the
// Machine. Secrets are not among them.
func templateValues(in Input, free map[string]string) (map[string]any, error) {
	address, prefix, gateway := "", 0, ""
	b := boot(in)
	if of, err := netip.ParsePrefix(b.CIDR); err == nil {
		prefix, gateway = of.Bits(), of.Addr().String()
	}
	if b.Address != "" {
		own, via, err := b.Own()
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
		"Properties": texts(free), "SSHKeys": slices.Clone(in.SSHKeys),
		"AllocatedIP": address, "PrefixLength": prefix, "Gateway": gateway,
	}, nil
}

// object has its metadata in both spellings that templates use: as fields of Go, and as in YAML.
func object(name, namespace string, labels, annotations map[string]string) map[string]any {
	return map[string]any{
		"Name": name, "Namespace": namespace, "Labels": texts(labels), "Annotations": texts(annotations),
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": texts(labels), "annotations": texts(annotations)},
	}
}

func texts(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
