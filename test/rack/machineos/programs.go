package machineos

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Program does to the machine what a program of the image does, with the words behind its name. readFile reads a file of
// the system.
type Program func(arguments []string, environment map[string]string, readFile func(path string) ([]byte, error)) error

// Machine is what a system finds around it.
type Machine struct {
	// Programs are those that change something, by name; nil stands for one that is not installed. All others that are
	// called do nothing.
	Programs map[string]Program
	// Missing are units that did not get onto the disk, whatever the user data says.
	Missing []string
	// MACs are the addresses of its network interfaces; none: whatever the network data says is there.
	MACs []string
	// Coldplug is what happens when the kernel has its command line and finds the machine's devices, before any unit.
	OnColdplug func(*System)
	// Install changes what the image brings by packages, NAME or NAME=VERSION, in every boot since they are there; nil: they
	// bring nothing that counts.
	Install func(image *Image, packages []string) error
	// Services are what the image's own units do when they start, by name. All others start and do nothing.
	Services map[string]func(*System) error
	// Shell runs a script; nil: its known programs are called line by line, whichever branch they stand in.
	Shell func(system *System, text string, environment map[string]string) error
}

var (
	errNoCommand   = errors.New("command not found")
	errNoExecution = errors.New("permission denied")
)

// shells read scripts.
var shells = []string{"sh", "bash", "dash"}

// execute runs a program, or a shell script that was written.
func (s *System) execute(words []string, environment map[string]string) error {
	if len(words) == 0 {
		return nil
	}
	if known, err := s.callProgram(words, environment); known {
		return err
	}
	if !slices.Contains(shells, path.Base(words[0])) {
		file, written := s.Files[words[0]]
		if !written || !strings.HasPrefix(string(file.Content), "#!") {
			return nil
		}
		if mode, err := strconv.ParseUint(file.Mode, 8, 32); err != nil || mode&0o111 == 0 {
			return fmt.Errorf("%s: %w", words[0], errNoExecution)
		}
		return s.runScript(string(file.Content), environment)
	}
	for i, word := range words[1:] {
		switch {
		case !strings.HasPrefix(word, "-"):
			return s.runScript(string(s.Files[word].Content), environment)
		case strings.HasSuffix(word, "c") && i+2 < len(words):
			return s.runScript(words[i+2], environment)
		}
	}
	return nil
}

// call runs a known program: the machine's, or one of the two that every system has.
func (s *System) callProgram(words []string, environment map[string]string) (known bool, err error) {
	name := path.Base(words[0])
	program, known := s.machine.Programs[name]
	switch {
	case known && program == nil:
		return true, fmt.Errorf("%s: %w", words[0], errNoCommand)
	case known:
		return true, program(words[1:], environment, s.ReadFile)
	case name == "systemctl":
		return true, s.Systemctl(words[1:])
	case name == "modprobe":
		return true, s.Modprobe(words[1:])
	}
	return false, nil
}

// script reads a shell script for the known programs, line by line, whichever branch they stand in. A failure ends it
// under `set -e`, else the last one's is the script's. A failure is not counted in `if PROGRAM` and before `|| true`;
// `if ! PROGRAM` is taken for the begin of giving up.
func (s *System) runScript(text string, environment map[string]string) error {
	environment = cloneMap(environment)
	if s.machine.Shell != nil {
		return s.machine.Shell(s, text, environment)
	}
	errexit := false
	var last error
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		mayFail := strings.HasSuffix(line, "|| true") || strings.HasSuffix(line, "|| :")
		for _, part := range splitCommands(line) {
			command, isCondition := stripKeywords(words(part, environment), environment)
			errexit = errexit || isSetErrexit(command)
			if len(command) == 0 {
				continue
			}
			known, err := s.callProgram(command, environment)
			if !known || isCondition || mayFail {
				continue
			}
			if last = err; err != nil && errexit {
				return err
			}
		}
	}
	return last
}

// parts are what stands between the operators of a line; a comment has none.
func splitCommands(line string) []string {
	if strings.HasPrefix(line, "#") {
		return nil
	}
	return strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == '&' || r == '|' })
}

// setsStrict knows `set -e`, with other letters too.
func isSetErrexit(command []string) bool {
	return len(command) > 1 && command[0] == "set" && strings.HasPrefix(command[1], "-") && strings.Contains(command[1], "e")
}

// plain takes the shell's own words from before a command, and sets the variables that stand there. asked: the command is a
// condition.
func stripKeywords(command []string, environment map[string]string) (rest []string, isCondition bool) {
	for i, word := range command {
		name, _, isAssignment := strings.Cut(word, "=")
		switch {
		case word == "if" || word == "elif" || word == "while" || word == "until":
			isCondition = true
		case word == "!":
			isCondition = false
		case slices.Contains([]string{"then", "else", "do", "exec", "export", "{", "("}, word):
		case isAssignment && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == "":
			setVariable(environment, word)
		default:
			return command[i:], isCondition
		}
	}
	return nil, isCondition
}
