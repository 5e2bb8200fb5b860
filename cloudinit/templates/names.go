package templates

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// Values are the names of what templates see under .Values.
var Values = []string{"AllocatedIP", "BareMetalHost", "Gateway", "Machine", "NodeClaim", "PrefixLength", "Project", "Properties", "SSHKeys"}

// reader finds names of values that no machine has, before there is one.
type reader struct {
	tree *parse.Tree
	// problem is the first that was found; empty: none.
	problem string
}

// unknown is the first name in a template that no machine gives a value; empty: there is none.
func unknown(tree *parse.Tree) string {
	if tree == nil {
		return ""
	}
	r := reader{tree: tree}
	r.list(tree.Root, true)
	return r.problem
}

// list reads nodes. root says that the dot is still what the whole template is given.
func (r *reader) list(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			r.pipe(n.Pipe, root)
		case *parse.TemplateNode:
			r.pipe(n.Pipe, root)
		case *parse.IfNode:
			r.branch(&n.BranchNode, root, root)
		case *parse.RangeNode:
			r.branch(&n.BranchNode, root, false)
		case *parse.WithNode:
			r.branch(&n.BranchNode, root, false)
		}
	}
}

// branch leaves out what is only reached where the template itself has asked for a name.
func (r *reader) branch(b *parse.BranchNode, root, inner bool) {
	r.pipe(b.Pipe, root)
	if !strings.Contains(b.Pipe.String(), "hasKey") {
		r.list(b.List, inner)
		r.list(b.ElseList, root)
	}
}

func (r *reader) pipe(p *parse.PipeNode, root bool) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		for _, argument := range command.Args {
			switch n := argument.(type) {
			case *parse.PipeNode:
				r.pipe(n, root)
			case *parse.FieldNode:
				if root {
					r.name(n, n.Ident)
				}
			case *parse.VariableNode:
				if n.Ident[0] == "$" {
					r.name(n, n.Ident[1:])
				}
			}
		}
	}
}

// name asks whether any machine has .Values.Gateway.
func (r *reader) name(n parse.Node, path []string) {
	known := len(path) == 0 || path[0] == "Values" && (len(path) == 1 || slices.Contains(Values, path[1]))
	if known || r.problem != "" {
		return
	}
	at, _ := r.tree.ErrorContext(n)
	r.problem = fmt.Sprintf("%s: no machine has %s: there are .Values.%s", line(at), n, strings.Join(Values, ", .Values."))
}
