package tenant

import (
	"fmt"
	"io"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// level says how serious a finding is.
type level string

const (
	levelOK level = "ok"
	// levelNote is for what is worth knowing, and for what could not be checked.
	levelNote level = "note"
	// levelMend is for what must be corrected, because nodes would not join or would not be admitted.
	levelMend level = "mend"
)

// finding is the outcome of one check.
type finding struct {
	level level
	topic string
	text  string
}

// report collects findings, and the objects that the tenant must apply because of them.
type report struct {
	findings []finding
	// grants are for the tenant's cluster.
	grants []cli.Object
}

func (r *report) add(l level, topic, format string, args ...any) {
	r.findings = append(r.findings, finding{l, topic, fmt.Sprintf(format, args...)})
}

// countProblems counts the findings that must be mended.
func (r *report) countProblems() int {
	n := 0
	for _, f := range r.findings {
		if f.level == levelMend {
			n++
		}
	}
	return n
}

func (r *report) print(w io.Writer) {
	for _, f := range r.findings {
		fmt.Fprintf(w, "%-5s %s: %s\n", f.level, f.topic, f.text)
	}
}

// secretSuffix is appended to the name of the TenantCluster to make the name of its kubeconfig's Secret.
const secretSuffix = "-kubeconfig"

// scriptSuffix is appended to it to make the name of the Secret with the script of a join.
const scriptSuffix = "-join"

// managementObjects returns the objects that are applied in the management cluster.
func managementObjects(o options, kubeconfig, script []byte) ([]cli.Object, error) {
	metadata := func(name string) map[string]any { return map[string]any{"name": name, "namespace": o.namespace} }
	objects := []cli.Object{{
		"apiVersion": rbacAPI, "kind": "RoleBinding", "metadata": metadata("ingot-manager"),
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "ingot-manager-tenants"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "ingot-manager", "namespace": o.managerNamespace}},
	}}
	if o.includeSecret {
		lean, err := minifyKubeconfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		objects = append(objects, cli.Object{"apiVersion": "v1", "kind": "Secret", "metadata": metadata(o.name + secretSuffix), "type": "Opaque",
			"data": map[string]any{"kubeconfig": lean}})
	}
	join := map[string]any{}
	if o.endpoint != "" {
		join["endpoint"] = o.endpoint
	}
	if o.script != "" {
		join["secretRef"] = map[string]any{"name": o.name + scriptSuffix}
		if o.includeSecret {
			objects = append(objects, cli.Object{"apiVersion": "v1", "kind": "Secret", "metadata": metadata(o.name + scriptSuffix), "type": "Opaque", "data": map[string]any{v1alpha1.JoinScriptKey: script}})
		}
	}
	spec := map[string]any{"kubeconfigSecretRef": map[string]any{"name": o.name + secretSuffix}, "join": map[string]any{o.join: join}}
	if o.servingCertificates {
		spec["servingCertificates"] = string(v1alpha1.ServingCertificatesApprovedByIngot)
	}
	return append(objects, cli.Object{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "TenantCluster", "metadata": metadata(o.name), "spec": spec}), nil
}

// minifyKubeconfig returns the current context of a kubeconfig alone, because people's files also hold the credentials of other clusters.
func minifyKubeconfig(kubeconfig []byte) ([]byte, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err == nil {
		err = clientcmdapi.MinifyConfig(parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("reduce the kubeconfig to its current context: %w", err)
	}
	return clientcmd.Write(*parsed)
}
