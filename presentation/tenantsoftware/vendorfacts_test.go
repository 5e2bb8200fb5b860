package tenantsoftware_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// chartOf returns the values of a chart for the NodeTypes as JSON, and its warnings.
func chartOf(t *testing.T, name string, nodeTypes ...software.NodeType) (values, warnings string) {
	t.Helper()
	charts, err := tenantsoftware.Charts(nodeTypes)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		if c.Name == name {
			text, err := json.Marshal(c.Values)
			if err != nil {
				t.Fatal(err)
			}
			return string(text), c.Version + " " + strings.Join(c.Warnings, " ")
		}
	}
	t.Fatalf("there is no chart %s", name)
	return "", ""
}

// withGates returns the NodeType with feature gates of the DRA driver.
func withGates(n software.NodeType, gates ...string) software.NodeType {
	n.Plan.Tenant.FeatureGates = gates
	return n
}

// TestChartsHaveWhatTheirOwnTemplatesNeed pins facts of the charts: dra-driver-nvidia-gpu 0.4.1 and 0.5.0, nvidia-device-plugin 0.19.3 and gpu-operator-charts
// of AMD 1.5.1.
func TestChartsHaveWhatTheirOwnTemplatesNeed(t *testing.T) {
	all := nodeTypes(t)
	older := all["h100-dra"]
	older.Plan.Tenant.DRARelease = "0.4.1"
	for sentence, tt := range map[string]struct {
		chart     string
		nodeTypes []software.NodeType
		values    []string
		not       string
		says      string
	}{
		"IMEX of the host takes the mode beside the gate": {"dra-driver-nvidia-gpu", []software.NodeType{withGates(all["h100-dra"], "HostManagedIMEXDaemon")},
			[]string{`"computeDomains":{"enabled":true,"imex":{"hostSocketPath":"/etc/nvidia-imex/imex_ctrl.sock","mode":"hostManaged"}}`, `"HostManagedIMEXDaemon":true`}, "", "IMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock"},
		"without it there is no mode":           {"dra-driver-nvidia-gpu", []software.NodeType{all["h100-dra"]}, []string{`"computeDomains":{"enabled":false}`}, "nodeSelector\":", "0.5.0"},
		"another release":                       {"dra-driver-nvidia-gpu", []software.NodeType{older}, nil, "", "0.4.1"},
		"the operator's label selects nodes":    {"dra-driver-nvidia-gpu", []software.NodeType{all["h100-dra-operator"]}, []string{`"nodeSelector":{"nvidia.com/dra-kubelet-plugin":"true"}`}, "", ""},
		"AMD's operator watches modules":        {"gpu-operator-charts", []software.NodeType{all["mi300x-operator"]}, []string{`"kmm":{"enabled":true,"watch":true}`}, "", ""},
		"AMD's operator does not watch modules": {"gpu-operator-charts", []software.NodeType{all["mi300x"]}, []string{`"kmm":{"enabled":false,"watch":false}`, `{"effect":"NoExecute","key":"amd-dcm","operator":"Equal","value":"up"}`, `"key":"amd-gpu-unhealthy"`}, "", ""},
		"the plugin's own tolerations stay":     {"nvidia-device-plugin", []software.NodeType{all["h100-sxm-8"]}, []string{`"tolerations":[{"key":"CriticalAddonsOnly","operator":"Exists"},{"effect":"NoSchedule","key":"nvidia.com/gpu","operator":"Exists"},`, `"key":"node-role.kubernetes.io/master"`}, "", ""},
		"the operator's own tolerations stay":   {"gpu-operator", []software.NodeType{all["h100-mig-operator"]}, []string{`"key":"node-role.kubernetes.io/control-plane"`, `"key":"nvidia.com/gpu","operator":"Equal","value":"present"`}, "", ""},
	} {
		values, says := chartOf(t, tt.chart, tt.nodeTypes...)
		for _, part := range tt.values {
			if !strings.Contains(values, part) {
				t.Errorf("%s: the values are %s, want %s", sentence, values, part)
			}
		}
		if tt.not != "" && strings.Contains(values, tt.not) || !strings.Contains(says, tt.says) {
			t.Errorf("%s: %s, %s", sentence, values, says)
		}
	}
	rack := all["gb200-4"]
	if _, err := tenantsoftware.Charts([]software.NodeType{withGates(all["h100-dra"], "HostManagedIMEXDaemon"), rack}); err == nil {
		t.Error("one chart runs IMEX in compute domains and leaves it to the hosts")
	}
}

// TestMPSByClaimsMayRunItsDaemons: the driver runs a Deployment for each claim, as the service account of its own pod (templates/rbac-kubeletplugin.yaml).
func TestMPSByClaimsMayRunItsDaemons(t *testing.T) {
	all := nodeTypes(t)
	find := func(objects []*unstructured.Unstructured, kind string) string {
		for _, o := range objects {
			if o.GetKind() == kind {
				text, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
		}
		return ""
	}
	for gate, want := range map[string]bool{"MPSSupport": true, "TimeSlicingSettings": false} {
		objects, err := tenantsoftware.Objects([]software.NodeType{withGates(all["h100-dra"], gate)})
		if err != nil {
			t.Fatal(err)
		}
		role, binding, set := find(objects, "Role"), find(objects, "RoleBinding"), find(objects, "DaemonSet")
		if got := strings.Contains(role, `"resources":["deployments"]`) && strings.Contains(binding, "nvidia-dra-driver-gpu-service-account-kubeletplugin"); got != want {
			t.Errorf("%s: it may run Deployments: %v; %s, %s", gate, got, role, binding)
		}
		if !strings.Contains(set, `{"name":"SERVICE_ACCOUNT_NAME","valueFrom":{"fieldRef":{"fieldPath":"spec.serviceAccountName"}}}`) {
			t.Errorf("%s: the driver does not know its service account: %s", gate, set)
		}
	}
}

// TestNoImageIsPulledFromElsewhereThanItsMirror walks the objects of every NodeType, and the values that name images in charts.
func TestNoImageIsPulledFromElsewhereThanItsMirror(t *testing.T) {
	mirrors, err := software.ParseMirrors([]string{"nvcr.io=r.example.com/n", "registry.k8s.io=r.example.com/k", "docker.io=r.example.com/d"})
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for name, n := range nodeTypes(t) {
		components, err := tenantsoftware.Components([]software.NodeType{n})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range components {
			for _, o := range c.Objects {
				mirrors.Apply(o.Object)
				text, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				images += strings.Count(string(text), "r.example.com/")
				for _, registry := range []string{"nvcr.io", "registry.k8s.io", "docker.io"} {
					if strings.Contains(string(text), registry) {
						t.Errorf("%s: %s %s pulls from %s: %s", name, o.GetKind(), o.GetName(), registry, text)
					}
				}
			}
		}
	}
	if images < 20 {
		t.Errorf("only %d images have a mirror", images)
	}
	charts, err := tenantsoftware.Charts([]software.NodeType{nodeTypes(t)["h100-dra"], nodeTypes(t)["h100-sxm-8"]})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		mirrors.ApplyToChart(&c)
		text, err := json.Marshal(c.Values)
		if err != nil || !strings.Contains(string(text), `"image":{"repository":"r.example.com/`) {
			t.Errorf("%v: the values of %s name no mirror: %s", err, c.Name, text)
		}
	}
}
