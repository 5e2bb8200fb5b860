package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramIsWhereTheVariableSays(t *testing.T) {
	file := touch(t, filepath.Join(t.TempDir(), "any-name"))
	t.Setenv(ProgramVariable, file)
	if found, err := Program(); err != nil || found != file {
		t.Errorf("found %s: %v", found, err)
	}
	t.Setenv(ProgramVariable, file+"-not")
	if _, err := Program(); err == nil || !strings.Contains(err.Error(), "make bin/ingot-controlplane") {
		t.Errorf("error %v", err)
	}
}

func TestProgramIsInTheModulesBin(t *testing.T) {
	t.Setenv(ProgramVariable, "")
	root := t.TempDir()
	nested := filepath.Join(root, "test", "nested")
	if err := os.MkdirAll(nested, 0o700); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(root, "go.mod"))
	touch(t, filepath.Join(nested, "go.mod"))
	t.Chdir(nested)

	if _, err := Program(); err == nil || !strings.Contains(err.Error(), "run make bin/ingot-controlplane") {
		t.Errorf("error %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := touch(t, filepath.Join(root, "bin", programName))
	if found, err := Program(); err != nil || found != want {
		t.Errorf("found %s, want %s: %v", found, want, err)
	}
}

func touch(t *testing.T, file string) string {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}
