package machineos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// written is user data with a mode unit as given, which enables it and starts kubelet.
func written(unit, script, mode string) string {
	indented := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") }
	return fmt.Sprintf(`#cloud-config
write_files:
- path: /etc/systemd/system/gpu-mode.service
  content: |
    %s
- path: /usr/local/sbin/gpu-mode
  permissions: %q
  content: |
    %s
runcmd:
- [systemctl, daemon-reload]
- [systemctl, enable, --now, gpu-mode.service]
- [systemctl, enable, --now, kubelet]
`, indented(unit), mode, indented(script))
}

const (
	modeUnit = `[Unit]
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
Environment=CONFIG=ingot
ExecStart=/usr/local/sbin/gpu-mode
[Install]
WantedBy=multi-user.target
RequiredBy=kubelet.service
`
	modeScript = "#!/bin/sh\nset -eu\n# gpu-tool --not-this\ngpu-tool --config ${CONFIG} \\\n  --more\n"
)

// tool is a program that fails, or not, and remembers how it was called.
type tool struct {
	err   error
	calls []string
}

func (p *tool) machine() Machine {
	return Machine{Programs: map[string]Program{"gpu-tool": func(arguments []string, environment map[string]string, _ func(string) ([]byte, error)) error {
		p.calls = append(p.calls, strings.Join(arguments, " ")+environment["EXTRA"])
		return p.err
	}, "not-installed": nil}}
}

func TestWhatRunsBeforeAUnitWritesItsEnvironmentAndCanKeepItFromStarting(t *testing.T) {
	for before, want := range map[string]string{
		"ExecStartPre=gpu-tool first\nExecStartPre=-not-installed": "first;last",
		"ExecStartPre=not-installed":                               "",
		"ExecStartPre=not-installed\nExecStartPre=":                "last",
	} {
		p := &tool{}
		user := written("[Service]\nType=oneshot\n"+before+"\nExecStart=gpu-tool last", modeScript, "0755")
		if _, err := Boot(Image{}, drive("a", user), nil, p.machine()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.calls, ";"); got != want {
			t.Errorf("%s: %q, expected %q", before, got, want)
		}
	}
}

// TestAServiceThatFailedIsStartedAgainWhenAllElseRuns: systemctl has returned long before. A oneshot service fails at once.
func TestAServiceThatFailedIsStartedAgainWhenAllElseRuns(t *testing.T) {
	for unit, want := range map[string]string{
		"[Service]\nExecStart=gpu-tool once\nRestart=on-failure":               "once;once",
		"[Service]\nExecStart=gpu-tool once":                                   "once",
		"[Service]\nType=oneshot\nExecStart=gpu-tool once\nRestart=on-failure": "once",
	} {
		p := &tool{err: errors.New("not yet")}
		system, err := Boot(Image{}, drive("a", written(unit, modeScript, "0755")), nil, p.machine())
		if got := strings.Join(p.calls, ";"); got != want || err != nil || system.Failure("gpu-mode") == nil {
			t.Errorf("%s: %q, %v; expected %q", unit, got, err, want)
		}
	}
}

func TestKubeletStartsBehindTheUnitThatItRequires(t *testing.T) {
	broken := errors.New("broken")
	edit := func(old, new string) string { return strings.Replace(modeUnit, old, new, 1) }
	for name, test := range map[string]struct {
		unit, script, mode string
		err                error
		calls              []string
		runs               bool
	}{
		"all is well":         {modeUnit, modeScript, "0755", nil, []string{"--config ingot --more"}, true},
		"the program fails":   {modeUnit, modeScript, "0755", broken, []string{"--config ingot --more", "--config ingot --more"}, false},
		"it is not required":  {edit("RequiredBy=kubelet.service\n", ""), modeScript, "0755", broken, []string{"--config ingot --more"}, true},
		"there is no order":   {edit("Before=kubelet.service\n", ""), modeScript, "0755", broken, []string{"--config ingot --more", "--config ingot --more"}, true},
		"it may fail":         {edit("ExecStart=", "ExecStart=-"), modeScript, "0755", broken, []string{"--config ingot --more"}, true},
		"called by the unit":  {edit("/usr/local/sbin/gpu-mode", "/usr/bin/gpu-tool a b"), modeScript, "0755", nil, []string{"a b"}, true},
		"called by a shell":   {edit("/usr/local/sbin/gpu-mode", "/bin/sh -ec 'gpu-tool c; gpu-tool d'"), modeScript, "0755", nil, []string{"c", "d"}, true},
		"read by a shell":     {edit("/usr/local/sbin/gpu-mode", "/bin/sh /usr/local/sbin/gpu-mode"), modeScript, "0644", nil, []string{"--config ingot --more"}, true},
		"not executable":      {modeUnit, modeScript, "0644", nil, nil, false},
		"not installed":       {modeUnit, "#!/bin/sh\nset -e\nnot-installed\ngpu-tool\n", "0755", nil, nil, false},
		"forgiven":            {modeUnit, "#!/bin/sh\nset -e\ngpu-tool || true\n", "0755", broken, []string{""}, true},
		"asked":               {modeUnit, "#!/bin/sh\nset -e\nif gpu-tool; then\n  echo yes\nfi\n", "0755", broken, []string{""}, true},
		"asked, and given up": {modeUnit, "#!/bin/sh\nif ! gpu-tool; then\n  exit 1\nfi\n", "0755", broken, []string{"", ""}, false},
		"a variable":          {modeUnit, "#!/bin/sh\nNAME=x\nEXTRA=y gpu-tool \"${NAME}\"\n", "0755", nil, []string{"xy"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			program := &tool{err: test.err}
			s, err := Boot(Image{}, drive("a", written(test.unit, test.script, test.mode)), nil, program.machine())
			if err != nil {
				t.Fatal(err)
			}
			if s.IsRunning("kubelet") != test.runs || !slices.Equal(program.calls, test.calls) {
				t.Errorf("kubelet runs: %t, called: %q; kubelet: %v", s.IsRunning("kubelet"), program.calls, s.Failure("kubelet"))
			}
			if !test.runs && !errors.Is(s.Failure("kubelet"), errDependency) || test.err != nil && !test.runs && !errors.Is(s.Failure("kubelet"), test.err) {
				t.Errorf("why kubelet does not run: %v", s.Failure("kubelet"))
			}
			// The next boot has the same order, without cloud-init.
			program.calls = nil
			again, err := Boot(Image{}, drive("a", ""), &s.State, program.machine())
			if err != nil || again.IsRunning("kubelet") != test.runs || len(test.calls) > 0 && len(program.calls) == 0 {
				t.Errorf("the next boot: kubelet runs: %t, called: %q, %v", again.IsRunning("kubelet"), program.calls, err)
			}
			// Then the program works.
			program.err = nil
			again, _ = Boot(Image{}, drive("a", ""), &s.State, program.machine())
			if test.err != nil && !again.IsRunning("kubelet") {
				t.Errorf("kubelet does not recover: %v", again.Failure("kubelet"))
			}
		})
	}
}

func TestAUnitThatIsNotOnTheDiskHoldsNobodyUp(t *testing.T) {
	program := &tool{}
	machine := program.machine()
	machine.Missing = []string{"gpu-mode.service"}
	s, err := Boot(Image{}, drive("a", written(modeUnit, modeScript, "0755")), nil, machine)
	if err != nil || !s.IsRunning("kubelet") || len(program.calls) > 0 || !errors.Is(s.Failure("gpu-mode"), errNotFound) {
		t.Errorf("%v, kubelet runs: %t, called %q, %v", err, s.IsRunning("kubelet"), program.calls, s.Failure("gpu-mode"))
	}
	whole, err := Boot(Image{}, drive("b", written(modeUnit, modeScript, "0755")), nil, program.machine())
	if err != nil || len(program.calls) != 1 {
		t.Fatalf("%v, called %q", err, program.calls)
	}
	if again, err := Boot(Image{}, nil, &whole.State, machine); err != nil || !again.IsRunning("kubelet") || len(program.calls) != 1 {
		t.Errorf("lost later: %v, kubelet runs: %t, called %q", err, again.IsRunning("kubelet"), program.calls)
	}
}

func TestAMaskedUnitIsAMissingDependency(t *testing.T) {
	program := &tool{}
	text := strings.Replace(written(modeUnit, modeScript, "0755"), "- [systemctl, enable, --now, kubelet]", "- [systemctl, mask, --now, gpu-mode]\n- [systemctl, start, kubelet]\n- gpu-tool by hand", 1)
	s, err := Boot(Image{}, drive("a", text), nil, program.machine())
	if err != nil {
		t.Fatal(err)
	}
	if s.IsRunning("kubelet") || s.IsRunning("gpu-mode") || !errors.Is(s.Failure("kubelet"), errMasked) {
		t.Errorf("kubelet: %v", s.Failure("kubelet"))
	}
	if want := []string{"--config ingot --more", "by hand"}; !slices.Equal(program.calls, want) || slices.Contains(s.Ignored, "gpu-tool") {
		t.Errorf("called: %q, ignored %q", program.calls, s.Ignored)
	}
}
