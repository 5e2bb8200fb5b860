package render

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// runVCluster prints the values of a tenant's virtual cluster.
func runVCluster(cmd *cobra.Command, opts options) error {
	if opts.tenant == "" || opts.machine != "" || opts.host != "" || opts.chart != "" || len(opts.mirrors) > 0 {
		return cli.Usagef(cmd, "--output %s: expected --tenant, the tenant of an Entitlement or a TenantCluster, and neither --machine, --host, --chart nor --mirror", vclusterValues)
	}
	files, err := opts.flags.Open(cmd)
	if err != nil {
		return err
	}
	label, err := tenantLabel(files, opts.tenant)
	if err != nil {
		return err
	}
	values, note := privateNodes(), "the nodes join the virtual cluster; private nodes are a paid feature of vCluster"
	if label != "" {
		values, note = sharedNodes(label, opts.tenant), "the DeviceClasses of the tenant are synced, and claims go to the shared cluster, which schedules the pods; syncing of DRA is a paid feature of vCluster"
	} else if !slices.Contains(fieldValues(files, "TenantCluster", "metadata", "name"), opts.tenant) {
		return &offline.MissingError{Kind: "Entitlement of tenant, or TenantCluster,", Name: opts.tenant, Names: fieldValues(files, "Entitlement", "spec", "tenant"), Files: files.Names}
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	text, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Errorf("print the values: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// tenantLabel returns the label key under which the DeviceClasses of a tenant have it; empty: the files have no Entitlement of the tenant.
func tenantLabel(files offline.Files, tenant string) (string, error) {
	var names, labels []string
	for _, m := range files.Manifests {
		if m.Kind() != "Entitlement" || m.APIVersion() != v1alpha1.GroupVersion.String() || m.StringField("spec", "tenant") != tenant {
			continue
		}
		names = append(names, m.StringField("metadata", "name"))
		if label := cmp.Or(m.StringField("spec", "tenantLabel"), v1alpha1.LabelTenant); !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	switch len(labels) {
	case 0:
		return "", nil
	case 1:
		return labels[0], nil
	}
	return "", &offline.AmbiguousError{Kind: "tenantLabel of tenant " + tenant, Names: names, Flag: "-f"}
}

type object = map[string]any

// privateNodes are the values of a virtual cluster that nodes join.
func privateNodes() object { return object{"privateNodes": object{"enabled": true}} }

// sharedNodes are the values of a virtual cluster whose pods run in a shared one. The virtual cluster has no scheduler of its own: the shared cluster
// refuses pods with a node.
func sharedNodes(label, tenant string) object {
	enabled := object{"enabled": true}
	return object{"sync": object{
		"fromHost": object{"deviceClasses": object{"enabled": true, "selector": object{"matchLabels": object{label: tenant}}}},
		"toHost":   object{"resourceClaims": enabled, "resourceClaimTemplates": enabled},
	}}
}
