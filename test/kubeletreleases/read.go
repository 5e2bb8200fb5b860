package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// readMembers returns the paths of all members of KubeletConfiguration in the file of its types. Members of types of other packages are not followed.
func readMembers(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, err
	}
	structs := map[string]*ast.StructType{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = s
			}
		}
		return true
	})
	if structs["KubeletConfiguration"] == nil {
		return nil, fmt.Errorf("%s has no KubeletConfiguration", file)
	}
	out := members(structs, "KubeletConfiguration", "")
	slices.Sort(out)
	return out, nil
}

func members(structs map[string]*ast.StructType, name, prefix string) []string {
	var out []string
	for _, field := range structs[name].Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		out = append(out, prefix+key)
		if below := structName(field.Type); structs[below] != nil {
			out = append(out, members(structs, below, prefix+key+".")...)
		}
	}
	return out
}

// structName returns the name of the type of this package that a field, what it points to, or its items have; empty: it is of another one.
func structName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return structName(t.X)
	case *ast.ArrayType:
		return structName(t.Elt)
	}
	return ""
}

type gate struct {
	name string
	// locked is the minor release since which the gate has the value and no other; 0: it can be set.
	locked int
	value  bool
}

// gateLists are the directories of Kubernetes' lists of its gates, of which a release has one. 1.32 has a list of the gates without versions, too.
var gateLists = []string{"test/compatibility_lifecycle/reference", "test/featuregates_linter/test_data"}

func readGates(dir string, minor int) ([]gate, error) {
	var out []gate
	for _, list := range gateLists {
		for _, file := range []string{"versioned_feature_list.yaml", "unversioned_feature_list.yaml"} {
			text, err := os.ReadFile(filepath.Join(dir, list, file))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			gates, err := parseGates(text, minor)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, gates...)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it has no list of its feature gates where the lists of other releases are")
	}
	return out, nil
}

func parseGates(text []byte, minor int) ([]gate, error) {
	var list []struct {
		Name  string `json:"name"`
		Specs []struct {
			Default bool   `json:"default"`
			Locked  bool   `json:"lockToDefault"`
			Version string `json:"version"`
		} `json:"versionedSpecs"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var out []gate
	for _, entry := range list {
		g := gate{name: entry.Name}
		first := 0
		for i, s := range entry.Specs {
			var since int
			if _, err := fmt.Sscanf(s.Version, "1.%d", &since); err != nil && s.Version != "" {
				return nil, fmt.Errorf("gate %s: version %q: %w", entry.Name, s.Version, err)
			}
			if i == 0 {
				first = since
			}
			if s.Locked && since <= minor && g.locked == 0 {
				g.locked, g.value = max(since, 1), s.Default
			}
		}
		if first <= minor {
			out = append(out, g)
		}
	}
	return out, nil
}
