package join

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAJoinThatCannotApplySettingsRefusesThem(t *testing.T) {
	script := v1alpha1.JoinSpec{Script: &v1alpha1.ScriptJoin{}}
	for name, c := range map[string]struct {
		join    v1alpha1.JoinSpec
		members string
		refused bool
	}{
		"tlsBootstrap":           {v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, `{"maxPods":64}`, false},
		"kubeadm":                {v1alpha1.JoinSpec{Kubeadm: &v1alpha1.EndpointJoin{}}, `{"maxPods":64}`, false},
		"vcluster":               {v1alpha1.JoinSpec{VCluster: &v1alpha1.EndpointJoin{}}, `{"maxPods":64}`, false},
		"script":                 {script, `{"maxPods":64}`, true},
		"script that reads them": {v1alpha1.JoinSpec{Script: &v1alpha1.ScriptJoin{ReadsKubeletConfigDir: true}}, `{"maxPods":64}`, false},
		"script, without":        {script, "", false},
		"script, without any":    {script, `{"kind":"KubeletConfiguration"}`, false},
		"script, with no object": {script, "[]", true},
	} {
		got := SettingsProblem(c.join, []byte(c.members))
		if (got != "") != c.refused || c.refused && !strings.Contains(got, "spec.kubelet of the NodeType cannot be applied by the join script") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
