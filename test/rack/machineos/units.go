package machineos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unitDirectory is the directory of an administrator's units and drop-ins.
const unitDirectory = "/etc/systemd/system/"

// unitFile has the settings of a unit that are simulated.
type unitFile struct {
	// before are the command lines of ExecStartPre=.
	before      []startCommand
	commands    []startCommand
	environment map[string]string
	// oneshot means that the unit has started when its commands have ended; remains means that it then stays active
	// (RemainAfterExit=).
	oneshot, remains bool
	// restarts means that systemd starts the service again when it fails (Restart=).
	restarts bool
	// lists are the lists of [Unit] and [Install] by key: Requires, Wants, After, Before, RequiredBy, WantedBy.
	lists map[string][]string
}

// startCommand is a command line of ExecStart=. It may fail when it has the prefix "-".
type startCommand struct {
	text    string
	mayFail bool
}

// Command returns the command line that starts the service: from its unit file, then its drop-ins in the order of their
// names (systemd.unit(5)). vendor is the image's unit file, which an administrator's file replaces.
func (s *System) Command(unit, vendor string) ([]string, error) {
	unit = unitName(unit)
	file := s.loadUnit(unit, vendor)
	if len(file.commands) != 1 {
		return nil, fmt.Errorf("%s has %d commands in ExecStart=, systemd refuses all but one for a simple service", unit, len(file.commands))
	}
	return words(file.commands[0].text, file.environment), nil
}

// loadUnit reads the unit's file, or the vendor's text when there is none, and its drop-ins.
func (s *System) loadUnit(unit, vendor string) unitFile {
	text := vendor
	if file, ok := s.Files[unitDirectory+unit]; ok {
		text = string(file.Content)
	}
	parsed := unitFile{environment: map[string]string{}, lists: map[string][]string{}}
	s.parseUnit(&parsed, text)
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		if strings.HasPrefix(path, unitDirectory+unit+".d/") && strings.HasSuffix(path, ".conf") {
			s.parseUnit(&parsed, string(s.Files[path].Content))
		}
	}
	return parsed
}

// parseUnit adds the settings of a unit file or drop-in.
func (s *System) parseUnit(into *unitFile, text string) {
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
		}
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		key, value, isAssignment := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !isAssignment:
		case section == "[Service]":
			s.setServiceOption(into, key, value)
		case section == "[Unit]" || section == "[Install]":
			into.addToList(key, value)
		}
	}
}

// addToList adds words to a list. An empty assignment clears the list first.
func (u *unitFile) addToList(key, value string) {
	if key == "BindsTo" {
		key = "Requires"
	}
	if value == "" {
		u.lists[key] = nil
	}
	u.lists[key] = append(u.lists[key], strings.Fields(value)...)
}

func (s *System) setServiceOption(into *unitFile, key, value string) {
	switch key {
	case "Type":
		into.oneshot = value == "oneshot"
	case "RemainAfterExit":
		into.remains = slices.Contains([]string{"yes", "true", "on", "1"}, value)
	case "Restart":
		into.restarts = value == "on-failure" || value == "always"
	case "ExecStart":
		into.commands = appendCommand(into.commands, value)
	case "ExecStartPre":
		into.before = appendCommand(into.before, value)
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

// appendCommand adds a command line. An empty assignment takes the earlier ones back.
func appendCommand(to []startCommand, value string) []startCommand {
	if value == "" {
		return nil
	}
	text := strings.TrimLeft(value, "@-:+!")
	return append(to, startCommand{text: text, mayFail: strings.Contains(value[:len(value)-len(text)], "-")})
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
