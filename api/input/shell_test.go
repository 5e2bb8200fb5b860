package input

import (
	"os/exec"
	"testing"
)

func TestASuggestedCommandHasTheWordAndNothingElse(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not installed")
	}
	for text, want := range map[string]string{
		"S5XZNX0R": "S5XZNX0R", "eui.0025,naa-5/a:b": "eui.0025,naa-5/a:b", "": "''", "-rf": "'-rf'", "two words": "'two words'", "$(touch x)": "'$(touch x)'", "it's": `'it'\''s'`,
		"`id`; id": "'`id`; id'", "a\x1b[2Jb": "'a?[2Jb'", "a\nb": "'a\nb'",
	} {
		got := ShellWord(text)
		if got != want {
			t.Errorf("%q: %s, expected %s", text, got, want)
		}
		seen, err := exec.CommandContext(t.Context(), shell, "-c", "printf %s "+got).Output()
		if err != nil || string(seen) != Text(text) {
			t.Errorf("%q: a shell sees %q, %v", text, seen, err)
		}
	}
}
