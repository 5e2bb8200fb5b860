package nodetype

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// settings has a member of each form that JSON has, and numbers that a float64 or an int32 would change. %s stands for members of other releases.
const settings = `{"podPidsLimit": 9007199254740993, "nodeStatusMaxImages": -1, "memoryThrottlingFactor": 0.9, "maxPods": 64, "cpuCFSQuota": false,
"kubeReserved": {"cpu": "0.5", "memory": "8Gi"}, "evictionHard": {"memory.available": "5%%", "nodefs.available": "1Gi"}, "allowedUnsafeSysctls": ["net.*", "kernel.msg*"],
"shutdownGracePeriodByPodPriority": [{"priority": 2000000000, "shutdownGracePeriodSeconds": 5}, {"priority": 0, "shutdownGracePeriodSeconds": 60}],
"tracing": {"endpoint": "localhost:4317", "samplingRatePerMillion": 1000000}, "featureGates": {"DRAExtendedResource": true}%s}`

// decoded returns JSON with the digits of its numbers.
func decoded(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// plainClient sends and reads bytes, so that no type of this program stands between the test and the API server.
func plainClient(t *testing.T) rest.Interface {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &v1alpha1.GroupVersion, "/apis", scheme.Codecs.WithoutConversion()
	config.ContentType = "application/json"
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// storedSettings returns spec.kubelet as the API server sends it.
func storedSettings(t *testing.T, c rest.Interface, resource, name string) any {
	t.Helper()
	text, err := c.Get().Resource(resource).Name(name).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec struct{ Kubelet json.RawMessage }
	}
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return decoded(t, object.Spec.Kubelet)
}

// applySettings creates a NodeType with these settings of kubelet.
func applySettings(t *testing.T, c rest.Interface, name, kubelet string) {
	t.Helper()
	body := fmt.Appendf(nil, `{"apiVersion": "ingot.dev/v1alpha1", "kind": "NodeType", "metadata": {"name": %q}, "spec": {"providerRef": {"name": %q},
		"osImageRef": {"name": "settings"}, "hostSelector": {"matchLabels": {"gpu-model": "h100"}}, "kubelet": %s}}`, name, "settings", kubelet)
	if _, err := c.Post().Resource("nodetypes").Body(body).DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Client.Delete(context.Background(), &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
}

// TestSettingsOfKubeletAreStoredAsTheyAreWritten shows that neither the API server nor the controller changes them: not in the NodeType, with members that
// no release has, and not in its revision.
func TestSettingsOfKubeletAreStoredAsTheyAreWritten(t *testing.T) {
	run(t)
	create(t, provider("settings", server.Namespace(t)), image("settings"))
	c, known := plainClient(t), fmt.Sprintf(settings, "")
	applySettings(t, c, "settings", known)
	if diff := cmp.Diff(decoded(t, []byte(known)), storedSettings(t, c, "nodetypes", "settings")); diff != "" {
		t.Errorf("in the NodeType (-written +stored):\n%s", diff)
	}
	made := await(t, "settings", "it is Ready", hasReason(v1alpha1.ReasonReady))
	if diff := cmp.Diff(decoded(t, []byte(known)), storedSettings(t, c, "nodetyperevisions", made.Status.StableRevision)); diff != "" {
		t.Errorf("in its revision (-written +stored):\n%s", diff)
	}
	unknown := fmt.Sprintf(settings, `, "ofNoRelease": {"deep": [{"er": 1.5}]}`)
	applySettings(t, c, "unknown-settings", unknown)
	if diff := cmp.Diff(decoded(t, []byte(unknown)), storedSettings(t, c, "nodetypes", "unknown-settings")); diff != "" {
		t.Errorf("with a member of no release (-written +stored):\n%s", diff)
	}
	await(t, "unknown-settings", "it is refused", hasReason(v1alpha1.ReasonKubeletInvalid))
}
