package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/clusterapi"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Command is `ingot convert`.
func Command() *cobra.Command {
	return cli.NewGroup("convert", "Carry manifests of other systems over", vmetalCommand(), metal3Command())
}

func vmetalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "vmetal FILE...",
		Short: "Print Ingot's objects for vMetal's",
		Long: `Reads vMetal's objects (management.loft.sh/v1) from files, folders or standard input (-), and
prints Ingot's: an OSImage for an OSImage, a NodeProvider of kind metal3 for a NodeProvider,
and a NodeType for each of its node types. Properties keep their keys, so that the nearest
still wins; templates and SSH keys that they name are put in their place. Resources that are
GPUs, MIG instances, partitions or vGPUs become spec.gpu; the URL of an image becomes an
OSImage. BareMetalHosts can stay as they are.

What must be added, checked or was not carried over is a comment above each object, and a
line on standard error. Then: ingot validate -f the result.`,
		Example: "  ingot convert vmetal vmetal/ > ingot.yaml && ingot validate -f ingot.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return convertFiles(cmd, args, Convert, isVMetal, "objects of "+group+" such as NodeProvider and OSImage")
		},
	}
}

func metal3Command() *cobra.Command {
	return &cobra.Command{
		Use:   "metal3 FILE...",
		Short: "Print Ingot's objects for those of Metal3 and Cluster API",
		Long: `Reads the objects of a site with Metal3 and Cluster API from files, folders or standard input
(-), and prints Ingot's: a NodePool and a NodeType for each MachineDeployment with its
Metal3MachineTemplate, Metal3DataTemplate and KubeadmConfigTemplate, an OSImage for each image, a
TenantCluster that nodes join by kubeadm for a Cluster, and a NodeProvider of kind metal3 for
each namespace of hosts. BareMetalHosts stay as they are. What cloud-init's Jinja templates read
of a host becomes an expression of Ingot's templates.

What must be added, checked or was not carried over is a comment above each object, and a
line on standard error. Then: ingot validate -f the result.`,
		Example: `  kinds=clusters.cluster.x-k8s.io,metal3clusters,kubeadmcontrolplanes,machinedeployments.cluster.x-k8s.io
  kinds=$kinds,metal3machinetemplates,metal3datatemplates,kubeadmconfigtemplates,ippools.ipam.metal3.io,baremetalhosts
  kubectl get -A -o yaml $kinds > site.yaml
  ingot convert metal3 site.yaml > ingot.yaml && ingot validate -f ingot.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return convertFiles(cmd, args, clusterapi.Convert, clusterapi.IsKnown, "objects of Metal3 and Cluster API such as MachineDeployment and Metal3MachineTemplate")
		},
	}
}

// convertFiles prints what the objects of files become. Files without objects of the system are an error; objects that become nothing by themselves,
// such as keys and templates, are part of a set, and none.
func convertFiles(cmd *cobra.Command, files []string, convert func([]offline.Manifest) conversion.Report, isKnown func(offline.Manifest) bool, expected string) error {
	all, err := offline.Read(files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	out := convert(all)
	for _, f := range out.Findings {
		fmt.Fprintln(cmd.ErrOrStderr(), f)
	}
	if len(out.Objects) == 0 && !slices.ContainsFunc(all, isKnown) {
		return fmt.Errorf("expected %s, seen none in %s", expected, strings.Join(files, ", "))
	}
	return out.Write(cmd.OutOrStdout())
}
