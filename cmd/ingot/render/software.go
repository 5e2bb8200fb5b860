package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// tenantDocuments are the documents for a tenant; the others are for a Machine.
var tenantDocuments = []string{operatorValues, operatorManifests}

// runSoftware prints the configuration of the tenant's GPU software.
func runSoftware(cmd *cobra.Command, opts options) error {
	if opts.machine != "" || opts.host != "" {
		return cli.Usagef(cmd, "--output %s is about a tenant: expected neither --machine nor --host", opts.output)
	}
	if opts.chart != "" && opts.output != operatorValues {
		return cli.Usagef(cmd, "--chart %s: expected --output %s", opts.chart, operatorValues)
	}
	files, err := opts.flags.Open(cmd)
	if err != nil {
		return err
	}
	nodeTypes, err := selectNodeTypes(files, opts)
	if err != nil {
		return err
	}
	mirrors, err := software.ParseMirrors(opts.mirrors)
	if err != nil {
		return cli.Usagef(cmd, "--mirror: %v", err)
	}
	var out bytes.Buffer
	if err := writeSoftware(&out, nodeTypes, opts, mirrors); err != nil {
		return fmt.Errorf("render %s: %w", opts.output, err)
	}
	for _, note := range append(tenantsoftware.Notes(nodeTypes), softwareNotes(nodeTypes, opts.output)...) {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	for _, n := range nodeTypes {
		for _, w := range n.Plan.Warnings {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: NodeType %s: %s (%s)\n", n.Name, w.Message, w.Rule)
		}
	}
	_, err = cmd.OutOrStdout().Write(out.Bytes())
	return err
}

func writeSoftware(out *bytes.Buffer, nodeTypes []software.NodeType, opts options, mirrors software.Mirrors) error {
	if opts.output == operatorManifests {
		return writeManifests(out, nodeTypes, mirrors)
	}
	return writeCharts(out, nodeTypes, opts.chart, mirrors)
}

// softwareNotes returns notes about NodeTypes that need more than what is printed, or nothing.
func softwareNotes(nodeTypes []software.NodeType, output string) []string {
	var out []string
	for _, n := range nodeTypes {
		switch {
		case n.GPU == nil:
			out = append(out, "NodeType "+n.Name+" has no GPU, and needs no software")
		case output == operatorManifests && n.GPU.Driver.Source == v1alpha1.DriverFromOperator:
			out = append(out, "NodeType "+n.Name+" takes its driver from the vendor's operator, which only a chart installs: --output "+operatorValues)
		}
	}
	return out
}

func writeManifests(out *bytes.Buffer, nodeTypes []software.NodeType, mirrors software.Mirrors) error {
	parts, err := tenantsoftware.Components(nodeTypes)
	if err != nil {
		return err
	}
	for _, p := range parts {
		for _, o := range p.Objects {
			mirrors.Apply(o.Object)
		}
		text, err := p.YAML()
		if err != nil {
			return err
		}
		writeDocument(out, text)
	}
	return nil
}

// writeCharts writes one document with the values of each chart, and one for each object that is applied with them.
func writeCharts(out *bytes.Buffer, nodeTypes []software.NodeType, name string, mirrors software.Mirrors) error {
	all, err := tenantsoftware.Charts(nodeTypes)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
		if name != "" && c.Name != name && c.Release != name {
			continue
		}
		mirrors.ApplyToChart(&c)
		if err := writeChart(out, c); err != nil {
			return err
		}
	}
	if name != "" && out.Len() == 0 {
		return &NotAvailableError{operatorValues, fmt.Sprintf("--chart %s: the NodeTypes need %s", name, strings.Join(append(names, "no other"), ", "))}
	}
	return nil
}

// writeChart writes the values and the objects of one chart. Software without a chart has objects only.
func writeChart(out *bytes.Buffer, c software.Chart) error {
	text, err := c.YAML()
	if err != nil {
		return err
	}
	about := "Apply once " + c.Name + " is installed."
	if len(c.Values) > 0 {
		writeDocument(out, text)
	} else {
		about = strings.ReplaceAll(strings.TrimPrefix(strings.TrimRight(string(text), "\n"), "# "), "\n# ", "\n")
	}
	if len(c.Objects) == 0 {
		return nil
	}
	if text, err = manifest.YAML(about, c.Objects); err != nil {
		return err
	}
	writeDocument(out, text)
	return nil
}

func writeDocument(out *bytes.Buffer, text []byte) {
	if out.Len() > 0 {
		out.WriteString("---\n")
	}
	out.Write(text)
}

// selectNodeTypes returns the NodeTypes that the flags ask for: by name, those of a tenant's NodePools, or all.
func selectNodeTypes(files offline.Files, opts options) ([]software.NodeType, error) {
	var chosen []string
	switch {
	case opts.flags.NodeType != "":
		chosen = strings.Split(opts.flags.NodeType, ",")
	case opts.tenant != "":
		chosen = fieldValues(files, "NodePool", "spec", "nodeTypeRef", "name")
	default:
		chosen = fieldValues(files, "NodeType", "metadata", "name")
	}
	if opts.tenant != "" {
		pools := files
		pools.Manifests = slices.DeleteFunc(slices.Clone(files.Manifests), func(m offline.Manifest) bool {
			return m.Kind() != "NodePool" || m.StringField("spec", "tenantClusterRef", "name") != opts.tenant
		})
		inPools := fieldValues(pools, "NodePool", "spec", "nodeTypeRef", "name")
		chosen = slices.DeleteFunc(chosen, func(name string) bool { return !slices.Contains(inPools, name) })
	}
	if len(chosen) == 0 && opts.tenant != "" {
		return nil, &offline.MissingError{Kind: "a NodePool of TenantCluster " + opts.tenant, Files: files.Names}
	}
	if len(chosen) == 0 {
		return nil, &offline.MissingError{Kind: "a NodeType", Files: files.Names}
	}
	var out []software.NodeType
	for _, name := range chosen {
		n, err := resolveNodeType(files, name)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func resolveNodeType(files offline.Files, name string) (software.NodeType, error) {
	inputs, err := files.FindNodeInputs(name)
	if err != nil {
		return software.NodeType{}, err
	}
	nodeType := inputs.NodeType.Spec
	plan, err := presentation.Resolve(spec.Request{GPU: nodeType.GPU, Image: inputs.Image.Spec, Resources: nodeType.Resources})
	if err != nil {
		return software.NodeType{}, fmt.Errorf("NodeType %s: %w", name, err)
	}
	return software.NewNodeType(inputs.NodeType, inputs.Image.Spec, plan), nil
}

// fieldValues returns the values of a field in all objects of a kind, each once.
func fieldValues(files offline.Files, kind string, field ...string) []string {
	var out []string
	for _, m := range files.Manifests {
		word := m.StringField(field...)
		if m.Kind() == kind && m.APIVersion() == v1alpha1.GroupVersion.String() && word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
