package machineos

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Program is the effect of a program of the image. arguments are the words after its name; readFile reads a file of the
// system.
type Program func(arguments []string, environment map[string]string, readFile func(path string) ([]byte, error)) error

// Machine is the environment in which a system boots.
type Machine struct {
	// Programs are the programs that have an effect, by name; nil stands for one that is not installed. All other programs do
	// nothing.
	Programs map[string]Program
	// Missing are units that are not written to the disk, whatever the user data says.
	Missing []string
	// MACs are the addresses of the network interfaces; without any, every address in the network data is accepted.
	MACs []string
	// OnColdplug is called when the kernel finds the machine's devices, before any unit starts.
	OnColdplug func(*System)
	// Install adds the software of packages, NAME or NAME=VERSION, to the image, in every boot after their installation; nil:
	// packages have no effect.
	Install func(image *Image, packages []string) error
	// Services are the effects of the image's own units when they start, by name. All other units of the image start and do
	// nothing.
	Services map[string]func(*System) error
	// Shell runs a script; nil: the known programs of a script are called line by line, whichever branch they are in.
	Shell func(system *System, text string, environment map[string]string, arguments []string) error
}

var (
	errNoCommand   = errors.New("command not found")
	errNoExecution = errors.New("permission denied")
)

// shells are the programs that run scripts.
var shells = []string{"sh", "bash", "dash"}

// execute runs a known program, or a shell script that was written to the disk.
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
		return s.runScript(string(file.Content), environment, words[1:]...)
	}
	for i, word := range words[1:] {
		switch {
		case !strings.HasPrefix(word, "-"):
			return s.runScript(string(s.Files[word].Content), environment, words[i+2:]...)
		case strings.HasSuffix(word, "c") && i+2 < len(words):
			return s.runScript(words[i+2], environment)
		}
	}
	return nil
}

// callProgram runs a program of the machine, systemctl or modprobe. known is false for any other program.
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

// runScript calls the known programs of a shell script line by line, whichever branch they are in. Under `set -e` the first
// failure ends the script; otherwise the script fails when the last program fails. A failure in `if PROGRAM` or before `||
// true` is ignored. `if ! PROGRAM` is assumed to end the script, so a failure there counts.
func (s *System) runScript(text string, environment map[string]string, arguments ...string) error {
	environment = cloneMap(environment)
	if s.machine.Shell != nil {
		return s.machine.Shell(s, text, environment, arguments)
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

// splitCommands splits a line at the shell's operators. A comment has no commands.
func splitCommands(line string) []string {
	if strings.HasPrefix(line, "#") {
		return nil
	}
	return strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == '&' || r == '|' })
}

// isSetErrexit reports whether the command is `set` with the option e.
func isSetErrexit(command []string) bool {
	return len(command) > 1 && command[0] == "set" && strings.HasPrefix(command[1], "-") && strings.Contains(command[1], "e")
}

// stripKeywords removes the shell's keywords before a command, and sets the variables that are assigned there. isCondition
// is true when the command is a condition.
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
