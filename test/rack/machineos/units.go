package machineos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unitDirectory is where an administrator's units and drop-ins are.
const unitDirectory = "/etc/systemd/system/"

// service is the part of a unit that says how to start it.
type service struct {
	commands    []string
	environment map[string]string
}

// Command is the command line that systemd starts the service with: its unit file, then its drop-ins in the order of
// their names, as systemd.unit(5) has it. vendor is the unit file of the image, which an administrator's replaces.
func (s *System) Command(unit, vendor string) ([]string, error) {
	unit = unitName(unit)
	text := vendor
	if file, ok := s.Files[unitDirectory+unit]; ok {
		text = string(file.Content)
	}
	parsed := service{environment: map[string]string{}}
	s.read(&parsed, text)
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		if strings.HasPrefix(path, unitDirectory+unit+".d/") && strings.HasSuffix(path, ".conf") {
			s.read(&parsed, string(s.Files[path].Content))
		}
	}
	if len(parsed.commands) != 1 {
		return nil, fmt.Errorf("%s has %d commands in ExecStart=, systemd refuses all but one for a simple service", unit, len(parsed.commands))
	}
	return words(parsed.commands[0], parsed.environment), nil
}

// read adds the text of a unit file or drop-in.
func (s *System) read(into *service, text string) {
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
		}
		if section == "[Service]" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			key, value, _ := strings.Cut(line, "=")
			s.assign(into, strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
}

func (s *System) assign(into *service, key, value string) {
	switch key {
	case "ExecStart":
		if value == "" {
			into.commands = nil // an empty assignment takes the earlier ones back
		} else {
			into.commands = append(into.commands, strings.TrimLeft(value, "@-:+!"))
		}
	case "Environment":
		for _, word := range words(value, nil) {
			setVariable(into.environment, word)
		}
	case "EnvironmentFile":
		for line := range strings.Lines(string(s.Files[strings.TrimPrefix(value, "-")].Content)) {
			setVariable(into.environment, strings.TrimSpace(line))
		}
	}
}

func setVariable(environment map[string]string, assignment string) {
	if name, value, found := strings.Cut(assignment, "="); found && !strings.HasPrefix(name, "#") {
		environment[name] = strings.Trim(value, `"'`)
	}
}

// words splits a command line as systemd.service(5) does: quotes hold words together, $NAME alone becomes several words,
// ${NAME} is replaced where it stands.
func words(line string, environment map[string]string) []string {
	var (
		out   []string
		word  strings.Builder
		quote rune
		begun bool
	)
	end := func() {
		if begun {
			out = append(out, expand(word.String(), environment)...)
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return out
}

func expand(word string, environment map[string]string) []string {
	if name, alone := strings.CutPrefix(word, "$"); alone && !strings.HasPrefix(name, "{") {
		return strings.Fields(environment[name])
	}
	for name, value := range environment {
		word = strings.ReplaceAll(word, "${"+name+"}", value)
	}
	return []string{word}
}
