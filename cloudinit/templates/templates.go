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
	// maxText of a template and maxOutput of what it renders to, in bytes.
	maxText, maxOutput = 128 << 10, 512 << 10
	// maxRepeat bounds the functions that make something of a number.
	maxRepeat = 4096
	// maxSteps of one execution.
	maxSteps = 100_000
	// tick is the function that counts them.
	tick = "ingotTick"
)

// denied are sprig's functions that are random, ask the clock, or cost more than user data is worth. Those of which it
// knows itself that they are not hermetic are not among its functions to begin with.
var denied = []string{
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"buildCustomCert", "bcrypt", "htpasswd", "encryptAES", "decryptAES", "derivePassword", "shuffle", "randInt", "ago", "toDate", "mustToDate",
	"mustDateModify", "must_date_modify", "unixEpoch", "seq",
}

var functions = safe()

func safe() template.FuncMap {
	out := sprig.HermeticTxtFuncMap()
	for _, name := range denied {
		delete(out, name)
	}
	out["keys"] = keys
	out["values"] = values
	out["repeat"] = func(n int, s string) (string, error) {
		if n < 0 || n > maxRepeat || n*len(s) > maxOutput {
			return "", tooMuch("repeat")
		}
		return strings.Repeat(s, n), nil
	}
	for _, name := range []string{"indent", "nindent"} {
		indent := out[name].(func(int, string) string)
		out[name] = func(n int, s string) (string, error) {
			if n < 0 || n > maxRepeat || (strings.Count(s, "\n")+1)*n > maxOutput {
				return "", tooMuch(name)
			}
			return indent(n, s), nil
		}
	}
	out["until"] = func(n int) ([]int, error) { return steps(0, n, 1) }
	out["untilStep"] = steps
	return out
}

func tooMuch(function string) error {
	return fmt.Errorf("%s: the number must be 0 to %d, and the result small", function, maxRepeat)
}

func steps(start, stop, step int) ([]int, error) {
	var out []int
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if out = append(out, i); len(out) > maxRepeat {
			return nil, tooMuch("until")
		}
	}
	return out, nil
}

func keys(all ...map[string]any) []string {
	var out []string
	for _, m := range all {
		out = append(out, slices.Sorted(maps.Keys(m))...)
	}
	return out
}

func values(m map[string]any) []any {
	var out []any
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// Invalid is a template that cannot be rendered.
type Invalid struct {
	// Name of the template.
	Name string
	// Message says where and why. It quotes the template's own words, and no value.
	Message string
}

// Error names the template.
func (i *Invalid) Error() string { return i.Name + ": " + i.Message }

// Template is one that was parsed. It is executed by one caller at a time.
type Template struct {
	name string
	tree *template.Template
	left int
}

// Parse reads a template. The error is an *Invalid.
func Parse(name, text string) (*Template, error) {
	if len(text) > maxText {
		return nil, &Invalid{Name: name, Message: fmt.Sprintf("the template has %d bytes, the limit is %d", len(text), maxText)}
	}
	t := &Template{name: name}
	var err error
	if t.tree, err = template.New("template").Option("missingkey=error").Funcs(named(text, t.tick)).Parse(text); err != nil {
		return nil, &Invalid{Name: name, Message: line(err.Error())}
	}
	if problem := unknown(t.tree.Tree); problem != "" {
		return nil, &Invalid{Name: name, Message: problem}
	}
	for _, one := range t.tree.Templates() {
		if one.Tree != nil {
			bound(one.Root)
		}
	}
	return t, nil
}

// named are the functions whose names are in the text, and tick: a template has maps of its own of the functions that it is
// given, and to fill them with all of sprig's takes longer than everything else.
func named(text string, count func() (string, error)) template.FuncMap {
	out := template.FuncMap{tick: count}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if f, ok := functions[word]; ok {
			out[word] = f
		}
	}
	return out
}

// tick counts the steps of one execution, and ends it when they are too many.
func (t *Template) tick() (string, error) {
	if t.left--; t.left < 0 {
		return "", errEndless
	}
	return "", nil
}

// bound lets every template and every round of a loop count: a loop over a number, or templates that call each other,
// could go on for years otherwise.
func bound(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			bound(n.List)
			bound(n.ElseList)
		case *parse.IfNode:
			bound(n.List)
			bound(n.ElseList)
		case *parse.WithNode:
			bound(n.List)
			bound(n.ElseList)
		}
	}
	list.Nodes = append([]parse.Node{count.Copy()}, list.Nodes...)
}

// count is the node {{tick}}.
var count = template.Must(template.New("").Funcs(template.FuncMap{tick: (&Template{}).tick}).Parse("{{" + tick + "}}")).Root.Nodes[0]

// Render executes the template with .Values. A value that is not there is an error, not <no value>. The error is an *Invalid.
func (t *Template) Render(with map[string]any) (out string, err error) {
	t.left = maxSteps
	defer func() {
		// Some of sprig's functions panic on values of another type than they expect.
		if recover() != nil {
			out, err = "", &Invalid{Name: t.name, Message: "a function was given a value that it cannot take"}
		}
	}()
	var buffer limited
	if err := t.tree.Execute(&buffer, map[string]any{"Values": with}); err != nil {
		return "", &Invalid{Name: t.name, Message: place(err)}
	}
	return buffer.String(), nil
}

// line is what package template says, without the name that every template has.
func line(text string) string {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "template: "), "template:"); ok {
		return "line " + rest
	}
	return text
}

// place is where an execution stopped, without what the function said: it may quote a value.
func place(err error) string {
	for _, known := range []error{errFull, errEndless} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var failed template.ExecError
	if !errors.As(err, &failed) {
		return "it cannot be rendered"
	}
	text := line(failed.Error())
	if before, _, ok := strings.Cut(text, ">: "); ok && !strings.Contains(text, "map has no entry for key") {
		text = before + ">: the function or the field does not take what it is given"
	}
	return text
}

var (
	errFull    = fmt.Errorf("it renders to more than %d bytes", maxOutput)
	errEndless = fmt.Errorf("it takes more than %d steps", maxSteps)
)

// limited is a buffer with an end.
type limited struct{ bytes.Buffer }

// Write appends, up to the limit.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		return 0, errFull
	}
	return l.Buffer.Write(p)
}
