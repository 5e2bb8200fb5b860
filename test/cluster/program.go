package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ProgramVariable names the environment variable that says where the control plane program is.
const ProgramVariable = "INGOT_CONTROLPLANE"

const programName = "ingot-controlplane"

// Program finds the control plane program: where INGOT_CONTROLPLANE says, else beside the running executable, else in
// bin at the root of the module that holds the working directory, or of a module around that one.
func Program() (string, error) {
	if named := os.Getenv(ProgramVariable); named != "" {
		if !isFile(named) {
			return "", fmt.Errorf("%s names %s, which is no file: run make bin/%s", ProgramVariable, named, programName)
		}
		return named, nil
	}
	candidates, err := programCandidates()
	if err != nil {
		return "", err
	}
	for _, candidate := range candidates {
		if isFile(candidate) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no control plane program at %s: run make bin/%s", strings.Join(candidates, " or "), programName)
}

func programCandidates() ([]string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running executable: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	candidates := []string{filepath.Join(filepath.Dir(executable), programName)}
	for {
		if isFile(filepath.Join(dir, "go.mod")) {
			candidates = append(candidates, filepath.Join(dir, "bin", programName))
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return candidates, nil
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
