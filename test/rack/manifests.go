package rack

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Objects returns the objects that an administrator creates for the servers: for each a Secret NAME-bmc with the credentials of the BMC and a
// BareMetalHost with the labels of its profile and its rack. The rack must have been started.
func (r *Rack) Objects(namespace string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, server := range r.servers {
		labels := map[string]any{"rack": r.options.Name}
		for name, value := range server.spec.Profile.Labels {
			labels[name] = value
		}
		secret := server.name + "-bmc"
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
			"metadata":   map[string]any{"name": secret, "namespace": namespace},
			"stringData": map[string]any{"username": server.spec.Username, "password": server.spec.Password},
		}}, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
			"metadata": map[string]any{"name": server.name, "namespace": namespace, "labels": labels},
			"spec": map[string]any{
				"online": false, "bootMACAddress": server.BootMAC(), "bootMode": "UEFI",
				"bmc": map[string]any{"address": strings.Replace(server.BMCAddress(), "https", "redfish", 1) + server.SystemPath(), "credentialsName": secret},
			},
		}})
	}
	return out
}

// Manifests returns the Objects as YAML. They contain the credentials of the BMCs.
func (r *Rack) Manifests(namespace string) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range r.Objects(namespace) {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}
