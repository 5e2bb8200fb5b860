package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatATargetFindsIsSaidWithHowToRepeatIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/target")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/target\n\ngo 1.25\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	var out bytes.Buffer
	err := run(t.Context(), &out, time.Second, "", nil)
	if err == nil || !strings.Contains(err.Error(), "repeated by go test -run 'FuzzSecond/") || strings.Contains(err.Error(), "FuzzNothing") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "2/2 example.com/target FuzzNothing") {
		t.Errorf("not every target was run: %s", out.String())
	}
	if kept, globErr := filepath.Glob("testdata/fuzz/FuzzSecond/*"); globErr != nil || len(kept) != 1 {
		t.Errorf("the input is not kept: %v, %v", kept, globErr)
	}
	if err := run(t.Context(), &out, time.Second, "FuzzNothing", []string{"."}); err != nil {
		t.Errorf("a target that finds nothing: %v", err)
	}
	if err := run(t.Context(), &out, time.Second, "FuzzOther", nil); err == nil {
		t.Error("no target at all is no success")
	}
}
