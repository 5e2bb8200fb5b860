package tenant

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// secretSuffix makes the name of the kubeconfig's Secret of the TenantCluster's.
const secretSuffix = "-kubeconfig"

// onboarding is what is applied in the management cluster.
func onboarding(o options, kubeconfig []byte) ([]cli.Object, error) {
	metadata := func(name string) map[string]any { return map[string]any{"name": name, "namespace": o.namespace} }
	objects := []cli.Object{{
		"apiVersion": rbacAPI, "kind": "RoleBinding", "metadata": metadata("ingot-manager"),
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "ingot-manager-tenants"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "ingot-manager", "namespace": o.managerNamespace}},
	}}
	if o.includeSecret {
		lean, err := minified(kubeconfig)
		if err != nil {
			return nil, err
		}
		objects = append(objects, cli.Object{"apiVersion": "v1", "kind": "Secret", "metadata": metadata(o.name + secretSuffix), "type": "Opaque",
			"data": map[string]any{"kubeconfig": lean}})
	}
	bootstrap := map[string]any{}
	if o.endpoint != "" {
		bootstrap["endpoint"] = o.endpoint
	}
	return append(objects, cli.Object{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "TenantCluster", "metadata": metadata(o.name),
		"spec": map[string]any{"kubeconfigSecretRef": map[string]any{"name": o.name + secretSuffix}, "join": map[string]any{"tlsBootstrap": bootstrap}},
	}), nil
}

// minified is the kubeconfig's current context alone: files of people hold the credentials of other clusters too.
func minified(kubeconfig []byte) ([]byte, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err == nil {
		err = clientcmdapi.MinifyConfig(parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("reduce the kubeconfig to its current context: %w", err)
	}
	return clientcmd.Write(*parsed)
}
