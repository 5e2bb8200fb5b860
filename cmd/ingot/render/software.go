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

// runSoftware prints what the tenant's GPU software must be told.
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
	nodeTypes, err := nodeTypesOf(files, opts)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if opts.output == operatorManifests {
		err = manifests(&out, nodeTypes)
	} else {
		err = charts(&out, nodeTypes, opts.chart)
	}
	if err != nil {
		return fmt.Errorf("render %s: %w", opts.output, err)
	}
	for _, note := range append(tenantsoftware.Notes(nodeTypes), byChart(nodeTypes, opts.output)...) {
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

// byChart are notes about NodeTypes for which what is printed does not suffice, or for which nothing is needed.
func byChart(nodeTypes []software.NodeType, output string) []string {
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

func manifests(out *bytes.Buffer, nodeTypes []software.NodeType) error {
	parts, err := tenantsoftware.Components(nodeTypes)
	if err != nil {
		return err
	}
	for _, p := range parts {
		text, err := p.YAML()
		if err != nil {
			return err
		}
		document(out, text)
	}
	return nil
}

// charts are each a document with the values, and one for each object that goes with them.
func charts(out *bytes.Buffer, nodeTypes []software.NodeType, named string) error {
	all, err := tenantsoftware.Charts(nodeTypes)
	if err != nil {
		return err
	}
	var seen []string
	for _, c := range all {
		seen = append(seen, c.Name)
		if named != "" && c.Name != named && c.Release != named {
			continue
		}
		if err := chart(out, c); err != nil {
			return err
		}
	}
	if named != "" && out.Len() == 0 {
		return &NotOffered{operatorValues, fmt.Sprintf("--chart %s: the NodeTypes need %s", named, strings.Join(append(seen, "no other"), ", "))}
	}
	return nil
}

// chart is a document with the values, and those of the objects. Software without a chart has objects only.
func chart(out *bytes.Buffer, c software.Chart) error {
	text, err := c.YAML()
	if err != nil {
		return err
	}
	about := "Apply once " + c.Name + " is installed."
	if len(c.Values) > 0 {
		document(out, text)
	} else {
		about = strings.ReplaceAll(strings.TrimPrefix(strings.TrimRight(string(text), "\n"), "# "), "\n# ", "\n")
	}
	if len(c.Objects) == 0 {
		return nil
	}
	if text, err = manifest.YAML(about, c.Objects); err != nil {
		return err
	}
	document(out, text)
	return nil
}

func document(out *bytes.Buffer, text []byte) {
	if out.Len() > 0 {
		out.WriteString("---\n")
	}
	out.Write(text)
}

// nodeTypesOf are the NodeTypes that were asked for: by name, those of a tenant's pools, or all.
func nodeTypesOf(files offline.Files, opts options) ([]software.NodeType, error) {
	var chosen []string
	switch {
	case opts.flags.NodeType != "":
		chosen = strings.Split(opts.flags.NodeType, ",")
	case opts.tenant != "":
		chosen = namesOf(files, "NodePool", "spec", "nodeTypeRef", "name")
	default:
		chosen = namesOf(files, "NodeType", "metadata", "name")
	}
	if opts.tenant != "" {
		pools := files
		pools.Manifests = slices.DeleteFunc(slices.Clone(files.Manifests), func(m offline.Manifest) bool {
			return m.Kind() != "NodePool" || m.Word("spec", "tenantClusterRef", "name") != opts.tenant
		})
		of := namesOf(pools, "NodePool", "spec", "nodeTypeRef", "name")
		chosen = slices.DeleteFunc(chosen, func(name string) bool { return !slices.Contains(of, name) })
	}
	if len(chosen) == 0 && opts.tenant != "" {
		return nil, &offline.MissingError{Kind: "a NodePool of TenantCluster " + opts.tenant, Files: files.Names}
	}
	if len(chosen) == 0 {
		return nil, &offline.MissingError{Kind: "a NodeType", Files: files.Names}
	}
	var out []software.NodeType
	for _, name := range chosen {
		n, err := nodeTypeOf(files, name)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func nodeTypeOf(files offline.Files, name string) (software.NodeType, error) {
	shape, err := files.ShapeOf(name)
	if err != nil {
		return software.NodeType{}, err
	}
	nodeType := shape.NodeType.Spec
	plan, err := presentation.Resolve(spec.Request{GPU: nodeType.GPU, Image: shape.Image.Spec, Resources: nodeType.Resources})
	if err != nil {
		return software.NodeType{}, fmt.Errorf("NodeType %s: %w", name, err)
	}
	return software.NewNodeType(shape.NodeType, shape.Image.Spec, plan), nil
}

// namesOf are the words of a field of all objects of the kind, each once.
func namesOf(files offline.Files, kind string, field ...string) []string {
	var out []string
	for _, m := range files.Manifests {
		word := m.Word(field...)
		if m.Kind() == kind && m.APIVersion() == v1alpha1.GroupVersion.String() && word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
