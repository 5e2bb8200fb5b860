package templates

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode"

	"github.com/Masterminds/sprig/v3"
)

const (
	// maxText is the limit of a template, and maxOutput that of the text that it renders, in bytes.
	maxText, maxOutput = 128 << 10, 512 << 10
	// maxRepeat is the limit of numbers that say how often or how far: those of repeat, indent and until.
	maxRepeat = 4096
	// maxSteps is the limit of steps of one execution.
	maxSteps = 100_000
	// tick is the name of the function that counts the steps.
	tick = "ingotTick"
)

// denied are functions of sprig that depend on randomness or on the clock, or that take too much time. HermeticTxtFuncMap leaves out
// only some of these.
var denied = []string{
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"buildCustomCert", "bcrypt", "htpasswd", "encryptAES", "decryptAES", "derivePassword", "shuffle", "randInt", "ago", "toDate", "mustToDate",
	"mustDateModify", "must_date_modify", "unixEpoch", "seq",
}

// functions are the functions that templates can call.
var functions = safeFunctions()

// safeFunctions returns the functions of sprig without the denied ones. Those that could fill the memory have a limit, and those that
// list a map have a fixed order.
func safeFunctions() template.FuncMap {
	out := sprig.HermeticTxtFuncMap()
	for _, name := range denied {
		delete(out, name)
	}
	out["keys"] = keys
	out["values"] = values
	out["repeat"] = func(n int, s string) (string, error) {
		if n < 0 || n > maxRepeat || n*len(s) > maxOutput {
			return "", limitError("repeat")
		}
		return strings.Repeat(s, n), nil
	}
	for _, name := range []string{"indent", "nindent"} {
		indent := out[name].(func(int, string) string)
		out[name] = func(n int, s string) (string, error) {
			if n < 0 || n > maxRepeat || (strings.Count(s, "\n")+1)*n > maxOutput {
				return "", limitError(name)
			}
			return indent(n, s), nil
		}
	}
	out["until"] = func(n int) ([]int, error) { return numbers(0, n, 1) }
	out["untilStep"] = numbers
	return out
}

// limitError returns the error of a function that was called with a number above its limit.
func limitError(function string) error {
	return fmt.Errorf("%s: the number must be 0 to %d, and the result small", function, maxRepeat)
}

// numbers returns the numbers from start to stop, without stop, in steps of the given size.
func numbers(start, stop, step int) ([]int, error) {
	var out []int
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if out = append(out, i); len(out) > maxRepeat {
			return nil, limitError("until")
		}
	}
	return out, nil
}

// keys returns the keys of the maps in alphabetical order.
func keys(all ...map[string]any) []string {
	var out []string
	for _, m := range all {
		out = append(out, slices.Sorted(maps.Keys(m))...)
	}
	return out
}

// values returns the values of the map in the order of its keys.
func values(m map[string]any) []any {
	var out []any
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// Invalid says why a template cannot be parsed or rendered.
type Invalid struct {
	// Name of the template.
	Name string
	// Message says where and why. It can quote the template, and never a value.
	Message string
}

// Error returns the name and the message.
func (i *Invalid) Error() string { return i.Name + ": " + i.Message }

// Template is a parsed template. It must not be rendered by several goroutines at the same time.
type Template struct {
	name      string
	tree      *template.Template
	stepsLeft int
}

// Parse parses a template. The error is an *Invalid.
func Parse(name, text string) (*Template, error) {
	if len(text) > maxText {
		return nil, &Invalid{Name: name, Message: fmt.Sprintf("the template has %d bytes, the limit is %d", len(text), maxText)}
	}
	t := &Template{name: name}
	var err error
	if t.tree, err = template.New("template").Option("missingkey=error").Funcs(namedFunctions(text, t.tick)).Parse(text); err != nil {
		return nil, &Invalid{Name: name, Message: withoutTemplateName(err.Error())}
	}
	if problem := unknownName(t.tree.Tree); problem != "" {
		return nil, &Invalid{Name: name, Message: problem}
	}
	for _, one := range t.tree.Templates() {
		if one.Tree != nil {
			insertTicks(one.Root)
		}
	}
	return t, nil
}

// namedFunctions returns the functions whose names are in the text, and tick. A template copies the functions that it is given, and
// copying all functions of sprig would take longer than everything else.
func namedFunctions(text string, count func() (string, error)) template.FuncMap {
	out := template.FuncMap{tick: count}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if f, ok := functions[word]; ok {
			out[word] = f
		}
	}
	return out
}

// tick counts a step. Its error ends the execution after maxSteps.
func (t *Template) tick() (string, error) {
	if t.stepsLeft--; t.stepsLeft < 0 {
		return "", errTooManySteps
	}
	return "", nil
}

// insertTicks inserts a call of tick into every template and into every loop. Without it, nested loops or templates that call each
// other could keep the controller busy for years.
func insertTicks(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			insertTicks(n.List)
			insertTicks(n.ElseList)
		case *parse.IfNode:
			insertTicks(n.List)
			insertTicks(n.ElseList)
		case *parse.WithNode:
			insertTicks(n.List)
			insertTicks(n.ElseList)
		}
	}
	list.Nodes = append([]parse.Node{tickNode.Copy()}, list.Nodes...)
}

// tickNode is the node {{ingotTick}}.
var tickNode = template.Must(template.New("").Funcs(template.FuncMap{tick: (&Template{}).tick}).Parse("{{" + tick + "}}")).Root.Nodes[0]

// Render executes the template with the values as .Values. A value that is missing is an error, and is not rendered as <no value>.
// The error is an *Invalid.
func (t *Template) Render(with map[string]any) (out string, err error) {
	t.stepsLeft = maxSteps
	defer func() {
		// Some functions of sprig panic when a value has another type than they expect.
		if recover() != nil {
			out, err = "", &Invalid{Name: t.name, Message: "a function was given a value that it cannot take"}
		}
	}()
	var buffer limitedBuffer
	if err := t.tree.Execute(&buffer, map[string]any{"Values": with}); err != nil {
		return "", &Invalid{Name: t.name, Message: executionMessage(err)}
	}
	return buffer.String(), nil
}

// withoutTemplateName returns a message of package template without the template's name, which is always the same.
func withoutTemplateName(text string) string {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "template: "), "template:"); ok {
		return "line " + rest
	}
	return text
}

// executionMessage returns where the execution stopped. The message of a function that failed is left out, because it may quote a
// value.
func executionMessage(err error) string {
	for _, known := range []error{errTooLong, errTooManySteps} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var failed template.ExecError
	if !errors.As(err, &failed) {
		return "it cannot be rendered"
	}
	text := withoutTemplateName(failed.Error())
	if before, _, ok := strings.Cut(text, ">: "); ok && !strings.Contains(text, "map has no entry for key") {
		text = before + ">: the function or the field does not take what it is given"
	}
	return text
}

var (
	errTooLong      = fmt.Errorf("it renders to more than %d bytes", maxOutput)
	errTooManySteps = fmt.Errorf("it takes more than %d steps", maxSteps)
)

// limitedBuffer is a buffer of at most maxOutput bytes.
type limitedBuffer struct{ bytes.Buffer }

// Write appends to the buffer, and returns an error when it would exceed the limit.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, errTooLong
	}
	return l.Buffer.Write(p)
}

// Values are the names of the values that templates can use: .Values.Gateway.
var Values = []string{"AllocatedIP", "BareMetalHost", "Gateway", "Machine", "NodeClaim", "PrefixLength", "Project", "Properties", "SSHKeys"}

// nameChecker finds names of values that no Machine has. It needs no values, so that templates can be checked before there is a
// Machine.
type nameChecker struct {
	tree *parse.Tree
	// problem is the message about the first such name; empty: there is none.
	problem string
}

// unknownName returns a message about the first name in the template that no Machine has a value for, or an empty text.
func unknownName(tree *parse.Tree) string {
	if tree == nil {
		return ""
	}
	r := nameChecker{tree: tree}
	r.checkList(tree.Root, true)
	return r.problem
}

// checkList checks the nodes of a list. root is true where the dot is the value that the template was executed with.
func (r *nameChecker) checkList(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			r.checkPipe(n.Pipe, root)
		case *parse.TemplateNode:
			r.checkPipe(n.Pipe, root)
		case *parse.IfNode:
			r.checkBranch(&n.BranchNode, root, root)
		case *parse.RangeNode:
			r.checkBranch(&n.BranchNode, root, false)
		case *parse.WithNode:
			r.checkBranch(&n.BranchNode, root, false)
		}
	}
}

// checkBranch checks a condition or a loop. Where the condition calls hasKey, it leaves out the body, which the template itself
// makes depend on the name.
func (r *nameChecker) checkBranch(b *parse.BranchNode, root, inner bool) {
	r.checkPipe(b.Pipe, root)
	if !strings.Contains(b.Pipe.String(), "hasKey") {
		r.checkList(b.List, inner)
		r.checkList(b.ElseList, root)
	}
}

// checkPipe checks the arguments of a pipeline.
func (r *nameChecker) checkPipe(p *parse.PipeNode, root bool) {
	if p == nil {
		return
	}
	for _, command := range p.Cmds {
		for _, argument := range command.Args {
			switch n := argument.(type) {
			case *parse.PipeNode:
				r.checkPipe(n, root)
			case *parse.FieldNode:
				if root {
					r.checkName(n, n.Ident)
				}
			case *parse.VariableNode:
				if n.Ident[0] == "$" {
					r.checkName(n, n.Ident[1:])
				}
			}
		}
	}
}

// checkName checks a name such as .Values.Gateway.
func (r *nameChecker) checkName(n parse.Node, path []string) {
	known := len(path) == 0 || path[0] == "Values" && (len(path) == 1 || slices.Contains(Values, path[1]))
	if known || r.problem != "" {
		return
	}
	at, _ := r.tree.ErrorContext(n)
	r.problem = fmt.Sprintf("%s: no machine has %s: there are .Values.%s", withoutTemplateName(at), n, strings.Join(Values, ", .Values."))
}
