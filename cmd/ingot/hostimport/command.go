package hostimport

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// standardInput is the name of a table that comes from standard input.
const standardInput = "-"

// Command is `ingot host import`.
func Command() *cobra.Command {
	var namespace, text, provider string
	c := &cobra.Command{
		Use:   "import FILE.csv",
		Short: "Print the BareMetalHosts and Secrets for a table of servers",
		Long: `Reads a table of servers and prints a BareMetalHost and a Secret for each. FILE.csv
may be - for standard input, such as the output of ingot host discover.

The first line names the columns, in any order:

  name           of the BareMetalHost, such as rack-a-01
  bmc address    as Metal3 writes it, such as redfish://10.0.0.11/redfish/v1/Systems/1,
                 or ipmi://10.0.0.11 with --provider ironic or metal3
  boot mac       of the NIC that the server boots from
  user           of the BMC
  password file  with the BMC's password, relative to FILE.csv (to the current directory for -)
  ironic node    UUID or name of the node that Ironic has for the server already, with
                 --provider ironic; the column and its cells may be absent. A server with
                 such a node may be without bmc address, user and password file
  tpm key        fingerprint of the endorsement key of the server's TPM (SHA-256 of the
                 SubjectPublicKeyInfo), or none: no agent of another server is served. The
                 column and its cells may be absent; then the first key that is seen is trusted
  label:KEY      a label of the host, such as label:rack; any number of such columns

A line that begins with # is left out. When a line is wrong nothing is printed but
the list of all that is wrong. Inspection then labels each host by its GPUs.`,
		Example: "  ingot host import hosts.csv --namespace metal --labels hall=1 | kubectl apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			common, err := parseLabels(cmd, text)
			if err != nil {
				return err
			}
			if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
				return cli.Usagef(cmd, "--namespace %s: expected a namespace such as metal", namespace)
			}
			if !slices.Contains(providers, provider) {
				return cli.Usagef(cmd, "--provider %s: expected one of %s", provider, strings.Join(providers, ", "))
			}
			return run(cmd, args[0], source{namespace: namespace, provider: provider, common: common})
		},
	}
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the hosts, as the NodeProvider's spec.hostNamespace says (default: kubectl's)")
	c.Flags().StringVar(&provider, "provider", providerRedfish, "kind of the NodeProvider that gets the hosts: redfish, ironic or metal3")
	c.Flags().StringVarP(&text, "labels", "l", "", "labels of every host: KEY=VALUE,...")
	return c
}

func parseLabels(cmd *cobra.Command, text string) (map[string]string, error) {
	parsed, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return nil, cli.Usagef(cmd, "--labels %s: expected KEY=VALUE,...: %v", text, err)
	}
	for key := range parsed {
		if problem := labelProblem(key, parsed[key]); problem != "" {
			return nil, cli.Usagef(cmd, "--labels: %s", problem)
		}
	}
	return parsed, nil
}

// source is what the flags say of a table.
type source struct {
	namespace, provider string
	common              map[string]string
}

func run(cmd *cobra.Command, path string, from source) error {
	table := cmd.InOrStdin()
	if path == standardInput {
		path = "standard input" // in no directory, so password files are relative to the current one
	} else {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read the table: %w", err)
		}
		defer file.Close()
		table = file
	}
	hosts, findings := Read(table, from.provider, func(name string) (fs.File, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return os.Open(name)
	})
	if len(findings) > 0 {
		for _, f := range findings {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: %s\n", path, f.Line, f.Message)
		}
		return fmt.Errorf("%s: %d wrong, nothing is printed: correct the table and run it again", path, len(findings))
	}
	var objects []cli.Object
	for _, h := range hosts {
		objects = append(objects, h.objects(from.namespace, from.common)...)
	}
	if err := cli.PrintObjects(cmd.OutOrStdout(), objects...); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d hosts\n", len(hosts))
	return nil
}
