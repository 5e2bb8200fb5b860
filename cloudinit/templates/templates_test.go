package templates

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func machine() map[string]any {
	return map[string]any{
		"NodeClaim": map[string]any{"Name": "training-7xk2p"}, "SSHKeys": []string{"ssh-ed25519 A", "ssh-ed25519 B"}, "Gateway": "10.20.4.1",
		"PrefixLength": 22, "Properties": map[string]any{"rack": "r1", "zone": "hall-1", "secret": "hunter2"},
	}
}

func TestTemplatesSeeTheirValues(t *testing.T) {
	for text, want := range map[string]string{
		`{{ .Values.NodeClaim.Name | upper }}`:                                     "TRAINING-7XK2P",
		`{{ range .Values.SSHKeys }}[{{ . }}]{{ end }}`:                            "[ssh-ed25519 A][ssh-ed25519 B]",
		`{{ .Values.Gateway }}/{{ .Values.PrefixLength }}`:                         "10.20.4.1/22",
		`{{ keys .Values.Properties | join "," }}`:                                 "rack,secret,zone",
		`{{ range $k, $v := .Values.Properties }}{{ $k }} {{ end }}`:               "rack secret zone ",
		`{{ range until 3 }}{{ . }}{{ end }}{{ untilStep 4 0 -2 }}`:                "012[4 2]",
		`{{ "a: b" | nindent 2 }}`:                                                 "\n  a: b",
		`{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" .Values.Gateway }}`:     "<10.20.4.1>",
		`{{- with .Values.Properties }}{{ .rack }}{{ else }}none{{ end -}}`:        "r1",
		`{{ if hasKey .Values.Properties "rack" }}{{ b64enc "x" }}{{ end }}`:       "eA==",
		`{{ get .Values.Properties "rack" | default "none" }}{{ repeat 2 "ab" }}`:  "r1abab",
		`{{ range 3 }}{{ . }}{{ if eq . 1 }}{{ break }}{{ end }}{{ end }}`:         "01",
		`{{ values .Values.Properties | join "," | trunc 9 }}`:                     "r1,hunter",
		`{{ dict "b" 1 "a" 2 | toJson }}{{ list 3 1 2 | sortAlpha | join "" }}`:    `{"a":2,"b":1}123`,
		`{{ regexReplaceAll "-.*" .Values.NodeClaim.Name "" }}{{/* a comment */}}`: "training",
	} {
		for range 3 {
			got, err := render("the template", text)
			if err != nil || got != want {
				t.Errorf("%s gives %q, %v, want %q", text, got, err, want)
			}
		}
	}
}

func TestWhatATemplateMayNotDo(t *testing.T) {
	for sentence, text := range map[string]string{
		"no template":              `{{ if }}`,
		"the environment":          `{{ env "HOME" }}`,
		"the environment, in text": `{{ expandenv "$HOME" }}`,
		"the clock":                `{{ now }}`,
		"chance":                   `{{ randAlpha 5 }}`,
		"another chance":           `{{ genCA "x" 1 }}`,
		"the network":              `{{ getHostByName "localhost" }}`,
		"a value that is not":      `{{ .Values.Properties.rak }}`,
		"an endless loop":          `{{ range 100000000000 }}{{ end }}`,
		"endless templates":        `{{ define "x" }}{{ template "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`,
		"a large result":           `{{ range until 4096 }}{{ repeat 4096 "x" }}{{ end }}`,
		"a large number":           `{{ repeat 100000000000 "x" }}`,
		"a large indent":           `{{ indent 100000000000 "x" }}`,
		"many steps":               `{{ until 100000000 }}`,
		"a panic":                  `{{ first 3 }}`,
		"a division":               `{{ div 1 0 }}`,
		"a failure":                `{{ fail .Values.Properties.secret }}`,
		"a secret as a number":     `{{ mustFromJson .Values.Properties.secret }}`,
	} {
		_, err := render("the template", text)
		var bad *Invalid
		if !errors.As(err, &bad) || bad.Name != "the template" {
			t.Errorf("%s: error %v, want *Invalid", sentence, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes a value: %v", sentence, err)
		}
	}
}

func TestCheckFindsWhatIsNoTemplate(t *testing.T) {
	if _, err := Parse("the template", `{{ .Values.Properties.X }}`); err != nil {
		t.Error(err)
	}
	if _, err := Parse("the template", `{{ nosuch }}`); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("error %v, want one that names the function", err)
	}
}

func TestNamesThatNoMachineHasAreFoundBeforeThereIsOne(t *testing.T) {
	for text, want := range map[string]string{
		`a
{{ .Values.Nope }}`: "line 2:10: no machine has .Values.Nope: there are .Values.AllocatedIP",
		`{{ if .Values.Gateway }}{{ upper .Values.Gatway }}{{ end }}`:           ".Values.Gatway",
		`{{ range .Values.SSHKeys }}{{ $.Values.Keys }}{{ end }}`:               "$.Values.Keys",
		`{{ with .Values.Nope.Deep }}{{ end }}`:                                 ".Values.Nope.Deep",
		`{{ (upper (lower .Values.Nope)) }}`:                                    ".Values.Nope",
		`{{ define "x" }}{{ . }}{{ end }}{{ template "x" .Values.Nope }}`:       ".Values.Nope",
		`{{ .NodeClaim.Name }}`:                                                 ".NodeClaim.Name",
		`{{ $v := .Values }}{{ $v.Gateway }}{{ .Values }}`:                      "",
		`{{ with .Values.Machine }}{{ .metadata.name }}{{ else }}-{{ end }}`:    "",
		`{{ range $i, $k := .Values.SSHKeys }}{{ $k }}{{ end }}`:                "",
		`{{ if hasKey .Values "Rack" }}{{ .Values.Rack }}{{ end }}`:             "",
		`{{ define "x" }}{{ .Values.Own }}{{ end }}{{ dict "Values" 1 | len }}`: "",
		`{{ .Values.BareMetalHost.Labels.rack }}{{ .Values.Project.Name }}`:     "",
		``:                             "",
		`{{ define "only" }}{{ end }}`: "",
	} {
		_, err := Parse("the template", text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// render parses and executes a template, twice: an execution leaves nothing behind.
func render(name, text string) (string, error) {
	t, err := Parse(name, text)
	if err != nil {
		return "", err
	}
	first, firstErr := t.Render(machine())
	second, err := t.Render(machine())
	if first != second || (firstErr == nil) != (err == nil) {
		return "", fmt.Errorf("%s renders to %q and then to %q, with %w and then %w", name, first, second, firstErr, err)
	}
	return second, err
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{`{{ .Values.Gateway }}`, `{{ range until 3 }}{{ . }}{{ end }}`, `{{ define "x" }}{{ end }}`, `{{ keys .Values.Properties }}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "printf") || strings.Contains(text, "regex") || len(text) > 200 {
			return
		}
		one, err1 := render("t", text)
		two, err2 := render("t", text)
		if one != two || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%q gave %q and %q", text, one, two)
		}
	})
}
