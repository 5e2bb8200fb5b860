package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// layer is a group of packages in the drawing. A package belongs to the first layer with a prefix of its directory.
type layer struct {
	id, title string
	prefixes  []string
	// depth is how many elements of a directory name a package of the drawing; what lies deeper is drawn as a part of it.
	depth int
}

// layers from the programs down to the API.
var layers = []layer{
	{"programs", "programs", []string{"cmd"}, 2},
	{"decisions", "decisions: pure functions", []string{"controllers/plan"}, 3},
	{"metal", "hardware: ports and adapters", []string{"controllers/hardware"}, 3},
	{"kit", "shared by the controllers", []string{"controllers/step", "controllers/tenantaccess", "controllers/readyourwrites", "controllers/hostindex"}, 2},
	{"shells", "controllers and webhook", []string{"controllers"}, 2},
	{"documents", "documents and expectations of nodes: pure functions", []string{"presentation", "cloudinit"}, 1},
	{"images", "images", []string{"imagebuilder"}, 1},
	{"manifests", "manifests", []string{"config"}, 1},
	{"types", "API types", []string{"api"}, 2},
}

// detailed are the pairs of layers between which packages are connected rather than the layers.
var detailed = map[[2]string]bool{{"shells", "decisions"}: true}

// roots are the directories of product code.
var roots = []string{"api", "cloudinit", "cmd", "config", "controllers", "imagebuilder", "presentation"}

// graph says for each node which others it depends on.
type graph map[string]map[string]bool

func (g graph) add(from, to string) {
	if g[from] == nil {
		g[from] = map[string]bool{}
	}
	g[from][to] = true
}

// readImports returns the directories of product packages, each with those that it imports, from the import declarations of
// all files that are no tests.
func readImports(root string) (graph, error) {
	module, err := modulePath(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	imports := graph{}
	for _, top := range roots {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			relative, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			return addImports(imports, module, filepath.ToSlash(relative), path)
		})
		if err != nil {
			return nil, err
		}
	}
	return imports, nil
}

func addImports(imports graph, module, directory, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	if imports[directory] == nil {
		imports[directory] = map[string]bool{}
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		target, ours := strings.CutPrefix(name, module+"/")
		if ours && target != directory && layerOf(target) != nil {
			imports.add(directory, target)
		}
	}
	return nil
}

func modulePath(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	module, ok := strings.CutPrefix(first, "module ")
	if !ok {
		return "", fmt.Errorf("%s does not begin with a module line", path)
	}
	return strings.TrimSpace(module), nil
}

// layerOf returns nil for a directory outside the product.
func layerOf(directory string) *layer {
	for i := range layers {
		if slices.ContainsFunc(layers[i].prefixes, func(p string) bool { return isBelow(directory, p) }) {
			return &layers[i]
		}
	}
	return nil
}

func isBelow(directory, prefix string) bool {
	return directory == prefix || strings.HasPrefix(directory, prefix+"/")
}

// drawnName returns the package of the drawing that a directory is part of.
func drawnName(directory string, l *layer) string {
	elements := strings.Split(directory, "/")
	return strings.Join(elements[:min(len(elements), l.depth)], "/")
}

// drawArchitecture returns the Mermaid text: the packages in their layers, the imports within a layer and of the detailed pairs
// between packages, and all others between layers. An arrow that follows from others is left out.
func drawArchitecture(imports graph) (string, error) {
	members := map[string]map[string]int{} // layer, package of the drawing, number of directories
	packages, between := graph{}, graph{}
	for directory, targets := range imports {
		from := layerOf(directory)
		if from == nil {
			return "", fmt.Errorf("package %s belongs to no layer: add it to the table of layers", directory)
		}
		name := drawnName(directory, from)
		if members[from.id] == nil {
			members[from.id] = map[string]int{}
		}
		members[from.id][name]++
		for target := range targets {
			to := layerOf(target)
			targetName := drawnName(target, to)
			switch {
			case name == targetName:
			case from == to || detailed[[2]string{from.id, to.id}]:
				packages.add(name, targetName)
			default:
				between.add(from.id, to.id)
			}
		}
	}
	for pair := range detailed {
		between.add(pair[0], pair[1]) // An arrow of layers that follows from these is left out, and these themselves are not drawn.
	}
	between = between.reduced()
	for pair := range detailed {
		delete(between[pair[0]], pair[1])
	}
	return mermaid(members, packages.reduced(), between), nil
}

// reduced returns the graph without the edges that a longer path stands for.
func (g graph) reduced() graph {
	out := graph{}
	for from, targets := range g {
		for to := range targets {
			if !g.hasIndirectPath(from, to) {
				out.add(from, to)
			}
		}
	}
	return out
}

// hasIndirectPath reports whether a path of at least two edges leads from one node to another.
func (g graph) hasIndirectPath(from, to string) bool {
	seen := map[string]bool{}
	var next []string
	for target := range g[from] {
		if target != to {
			next = append(next, target)
		}
	}
	for len(next) > 0 {
		node := next[0]
		next = next[1:]
		if node == to {
			return true
		}
		if seen[node] {
			continue
		}
		seen[node] = true
		next = slices.AppendSeq(next, maps.Keys(g[node]))
	}
	return false
}

func mermaid(members map[string]map[string]int, packages, between graph) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, l := range layers {
		if len(members[l.id]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  subgraph %s[\"%s\"]\n", l.id, l.title)
		for _, name := range slices.Sorted(maps.Keys(members[l.id])) {
			label := name
			if members[l.id][name] > 1 {
				label += "/..." // As in the patterns of the go command.
			}
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", nodeID(name), label)
		}
		b.WriteString("  end\n")
	}
	for _, edges := range []graph{between, packages} {
		for _, from := range slices.Sorted(maps.Keys(edges)) {
			if targets := slices.Sorted(maps.Keys(edges[from])); len(targets) > 0 {
				for i := range targets {
					targets[i] = nodeID(targets[i])
				}
				fmt.Fprintf(&b, "  %s --> %s\n", nodeID(from), strings.Join(targets, " & "))
			}
		}
	}
	return b.String()
}

// nodeID returns a short name without the characters that Mermaid reads as syntax: plan_host for controllers/plan/host.
func nodeID(name string) string {
	return strings.NewReplacer("/", "_", "-", "_").Replace(strings.TrimPrefix(name, "controllers/"))
}

// The lines of a package comment between which the drawing stands. Mermaid reads them as comments.
const (
	drawingBegins = "%% Drawn by make architecture from the import declarations. Do not edit."
	drawingEnds   = "%% End of the drawing."
)

// replaceDrawing puts the drawing, as an indented block of a package comment, in the place of the one before it.
func replaceDrawing(text, drawing string) (string, error) {
	begin, end := "//\t"+drawingBegins+"\n", "//\t"+drawingEnds+"\n"
	head, rest, found := strings.Cut(text, begin)
	if !found {
		return "", fmt.Errorf("has no line %q", drawingBegins)
	}
	_, tail, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("has no line %q", drawingEnds)
	}
	var b strings.Builder
	for line := range strings.Lines(drawing) {
		b.WriteString("//\t" + line)
	}
	return head + begin + b.String() + end + tail, nil
}
