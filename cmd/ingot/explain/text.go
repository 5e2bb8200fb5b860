package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// section is a heading and its lines. It is left out when it has no lines.
type section struct {
	heading string
	lines   [][]string
}

func (e Explanation) write(w io.Writer) error {
	if _, err := fmt.Fprintln(w, e.heading()); err != nil {
		return err
	}
	for _, s := range e.sections() {
		if len(s.lines) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", s.heading); err != nil {
			return err
		}
		for i := range s.lines {
			s.lines[i][0] = "  " + s.lines[i][0]
		}
		if err := cli.WriteTable(w, s.lines); err != nil {
			return err
		}
	}
	return nil
}

// sections returns what a Machine was installed with; none for manifests.
func (i *Installed) sections() []section {
	if i == nil {
		return nil
	}
	return []section{
		{"Installed", [][]string{{"Machine", i.Machine}, {"revision", i.Revision}, {"rendering", i.Rendering}, {"the NodeType's target rendering", i.Target}}},
		{"What the target rendering would change", column(i.Differences)},
		{"Whether the manager's version of Ingot makes the target rendering again", [][]string{{i.Current, i.Message}}},
	}
}

func (e Explanation) heading() string {
	gpus := "no GPUs"
	if g := e.GPU; g != nil {
		gpus = fmt.Sprintf("%d %s presented as %s", g.Count, g.Model, g.Mode)
	}
	return fmt.Sprintf("NodeType %s with OSImage %s: %s", e.NodeType, e.OSImage, gpus)
}

func (e Explanation) sections() []section {
	out := append(e.Installed.sections(), section{"The node must advertise", e.advertisedLines()})
	for _, s := range e.Slices {
		out = append(out, section{"Driver " + s.Driver + " must publish, in ResourceSlices of the node", s.lines()})
	}
	return append(out,
		section{"The node must not advertise", e.absentLines()},
		section{"Software that must run", pairs(map[string]string{"kernel": e.Kernel, "kubelet": e.Kubelet})},
		section{"Labels that are compared where vendors' software sets them", e.labelLines()},
		section{"Labels that kubelet registers with", pairs(e.NodeLabels)},
		section{"Kernel arguments", column(e.KernelArguments)},
		section{"Kernel modules", pairs(map[string]string{"load": strings.Join(e.Modules.Load, " "), "never load": strings.Join(e.Modules.Blacklist, " ")})},
		section{"Packages installed at the first boot", column(e.Packages)},
		section{"Files (their content is in -o json)", e.fileLines()},
		section{"systemd units, in the order of their start", e.unitLines()},
		section{"What to know", e.warningLines()},
	)
}

func (e Explanation) advertisedLines() [][]string {
	var out [][]string
	for _, name := range slices.Sorted(maps.Keys(e.Resources)) {
		out = append(out, []string{name, fmt.Sprint(e.Resources[name])})
	}
	for _, own := range []struct{ name, how string }{{"cpu", ""}, {"memory", " or up to 5% less"}, {"ephemeral-storage", " or more"}} {
		if quantity := e.Promised[own.name]; quantity != "" {
			out = append(out, []string{own.name, quantity + own.how})
		}
	}
	return out
}

func (e Explanation) absentLines() [][]string {
	var out [][]string
	for _, prefix := range e.Absent {
		out = append(out, []string{prefix + "...", "any other resource of GPU software"})
	}
	for _, driver := range e.AbsentDrivers {
		out = append(out, []string{driver, "devices in ResourceSlices"})
	}
	return out
}

func (s Slice) lines() [][]string {
	var out [][]string
	for _, d := range s.Devices {
		what := cmp.Or(d.Type, "devices without a type")
		if len(d.Profiles) > 0 {
			what += " " + strings.Join(d.Profiles, " or ")
		}
		var attributes []string
		for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
			attributes = append(attributes, name+" "+strings.Join(d.Attributes[name], " or "))
		}
		out = append(out, []string{what, fmt.Sprint(d.Count), strings.Join(attributes, ", ")})
	}
	for _, c := range s.DeviceClasses {
		out = append(out, []string{"DeviceClass " + c.Name, fmt.Sprint(c.Count), "selected"})
	}
	return out
}

func (e Explanation) labelLines() [][]string {
	var out [][]string
	for _, l := range e.ExpectedLabels {
		out = append(out, []string{l.Key, strings.Join(append([]string{l.Value}, l.Passing...), " or ")})
	}
	return out
}

func (e Explanation) fileLines() [][]string {
	var out [][]string
	for _, f := range e.Files {
		out = append(out, []string{f.Path, f.Mode})
	}
	for _, f := range e.SecretFiles {
		out = append(out, []string{f.Path, f.Mode, "key " + f.Key + " of Secret " + f.Secret})
	}
	return out
}

func (e Explanation) warningLines() [][]string {
	var out [][]string
	for _, w := range e.Warnings {
		out = append(out, []string{w.Message + " (" + w.Rule + ")"})
	}
	return out
}

func (e Explanation) unitLines() [][]string {
	var out [][]string
	for _, u := range e.Units {
		from := "of the image"
		if u.Content != "" {
			from = "written by Ingot"
		}
		out = append(out, []string{u.Name, from})
	}
	return out
}

// pairs returns the keys that have a value, sorted, each with its value.
func pairs(of map[string]string) [][]string {
	var out [][]string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if of[key] != "" {
			out = append(out, []string{key, of[key]})
		}
	}
	return out
}

func column(of []string) [][]string {
	var out [][]string
	for _, value := range of {
		out = append(out, []string{value})
	}
	return out
}
