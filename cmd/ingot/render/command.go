package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// options are the flags of the command line.
type options struct {
	flags                 offline.Flags
	machine, host, output string
	tenant, chart         string
	mirrors               []string
}

// Command is `ingot render`.
func Command() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "render -f FILE... [--machine NAME] --output WHAT",
		Short: "Print a document that a Machine's first boot, or a tenant's GPU software, would read",
		Long: `Reads a NodeType with its OSImage and NodeProvider from files and prints one document of a
Machine of it:

  user-data        #cloud-config or MIME, for images that read cloud-init's
  ignition         an Ignition configuration, for images that read that
  network-data     OpenStack network_data.json, which Ingot delivers
  network-config   the same network as cloud-init's version 2, for a NoCloud seed
  meta-data        OpenStack meta_data.json

and, without a Machine, of NodeTypes - those that --nodetype names, those of the NodePools of
--tenant, or all - what the GPU software of the cluster must be told that their nodes join:

  operator-values     values of the vendors' Helm charts, and the objects that go with them
  operator-manifests  device plugins and DRA drivers as plain objects, without Helm

and, of --tenant alone:

  vcluster-values     values of the tenant's virtual cluster: of the tenant of an Entitlement, whose
                      claims go to the shared cluster, or of a TenantCluster that nodes join by
                      vcluster

The Machine, its TenantCluster and its BareMetalHost are taken from the files where they are
there. No cluster is asked: what is not known is a placeholder, which standard error lists.`,
		Example: "  ingot render -f manifests/ --nodetype h100 --machine training-1 --output user-data\n" +
			"  ingot render -f manifests/ --tenant research --output operator-manifests | kubectl apply -f -",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCommand(cmd, opts) },
	}
	offline.AddFileFlag(c, &opts.flags)
	offline.AddNodeTypeFlag(c, &opts.flags)
	f := c.Flags()
	f.StringVar(&opts.machine, "machine", "", "name of the Machine, which need not be in the files")
	f.StringVar(&opts.host, "host", "", "name of the BareMetalHost in the files (default: the Machine's)")
	f.StringVar(&opts.tenant, "tenant", "", "TenantCluster whose NodePools say which NodeTypes, for operator-values and operator-manifests; for vcluster-values also the tenant of an Entitlement")
	f.StringVar(&opts.chart, "chart", "", "chart or release whose values are printed alone")
	f.StringSliceVar(&opts.mirrors, "mirror", nil, "registry or path of one, and where nodes pull instead, for operator-values and operator-manifests: nvcr.io=registry.example.com/nvcr")
	f.StringVarP(&opts.output, "output", "o", "", strings.Join(outputs, ", "))
	return c
}

func runCommand(cmd *cobra.Command, opts options) error {
	if !slices.Contains(outputs, opts.output) {
		return cli.Usagef(cmd, "--output %s: expected %s", opts.output, strings.Join(outputs, ", "))
	}
	if opts.output == vclusterValues {
		return runVCluster(cmd, opts)
	}
	if slices.Contains(tenantDocuments, opts.output) {
		return runSoftware(cmd, opts)
	}
	if opts.tenant != "" || opts.chart != "" || len(opts.mirrors) > 0 {
		return cli.Usagef(cmd, "--tenant, --chart and --mirror: expected --output %s", strings.Join(tenantDocuments, " or "))
	}
	if problems := validation.IsDNS1123Subdomain(opts.machine); len(problems) > 0 {
		return cli.Usagef(cmd, "--machine %s: expected the name of a Machine such as training-1", opts.machine)
	}
	return runMachine(cmd, opts)
}

// runMachine prints a document of a Machine's first boot.
func runMachine(cmd *cobra.Command, opts options) error {
	files, err := opts.flags.Open(cmd)
	if err != nil {
		return err
	}
	node, err := newNode(files, opts)
	if err != nil {
		return err
	}
	text, warnings, err := node.renderDocument(opts.output)
	if err != nil {
		return fmt.Errorf("render %s of Machine %s: %w", opts.output, opts.machine, err)
	}
	for _, p := range node.placeholders {
		// Ignition may have its files compressed.
		if opts.output == ignition || bytes.Contains(text, []byte(p.text)) {
			fmt.Fprintf(cmd.ErrOrStderr(), "placeholder: %q stands for %s\n", p.text, p.what)
		}
	}
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
