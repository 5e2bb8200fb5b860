package convert

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

func TestReservedResourcesBecomeSettingsOfKubelet(t *testing.T) {
	object, findings := converted(t, "NodeType", provider(t, "", "kubeReserved: {cpu: 500m, memory: 8Gi, ephemeral-storage: 10GB, gpu: 1}"))
	got, err := yaml.Marshal(conversion.ValueAt[any](object, "spec", "kubelet"))
	if err != nil || string(got) != "kubeReserved:\n  cpu: 500m\n  memory: 8Gi\n" {
		t.Errorf("spec.kubelet is %s (%v)", got, err)
	}
	for _, want := range []string{`"10GB" is no quantity such as 8Gi or 500m`, "kubelet reserves cpu, memory, ephemeral-storage, pid there"} {
		if !strings.Contains(findings, want) {
			t.Errorf("nobody tells that %s: %s", want, findings)
		}
	}
	if object, findings := converted(t, "NodeType", provider(t, "", "kubeReserved: much")); conversion.ValueAt[any](object, "spec", "kubelet") != nil || !strings.Contains(findings, "it is no map of resources") {
		t.Errorf("%v with %s", object, findings)
	}
}

func TestFlagsOfKubeletAreToldAsMembers(t *testing.T) {
	for _, args := range []string{
		"{max-pods: 64, topology-manager-policy: restricted, eviction-hard: memory.available=1Gi, feature-gates: DRAExtendedResource=true, node-ip: 10.0.0.1, provider-id: x}",
		"['--max-pods=64', '--topology-manager-policy=restricted', '--eviction-hard=memory.available=1Gi', '--feature-gates=DRAExtendedResource=true', '--node-ip=10.0.0.1', '--provider-id=x']",
	} {
		m := offline.Manifest{}
		if err := yaml.Unmarshal([]byte("{apiVersion: management.loft.sh/v1, kind: NodeClaim, metadata: {name: a}, spec: {kubeletArgs: "+args+"}}"), &m.Object); err != nil {
			t.Fatal(err)
		}
		_, findings := converted(t, "NodeType", m)
		for _, want := range []string{
			`spec.kubelet: {"evictionHard":{"memory.available":"1Gi"},"featureGates":{"DRAExtendedResource":true},"maxPods":64,"topologyManagerPolicy":"restricted"}`,
			"as the member nodeIp of spec.kubelet of the NodeType: KubeletConfiguration has no such member", "as the member providerId", "make a Machine",
		} {
			if !strings.Contains(findings, want) {
				t.Errorf("%s: lacks %q: %s", args, want, findings)
			}
		}
	}
}
