package firstrack

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// document is config/first-rack.md by its sections.
type document map[string]section

// section has the code of a section of the document.
type section struct {
	// commands are the blocks without a language, settings those of YAML.
	commands, settings []string
}

var (
	heading = regexp.MustCompile(`(?m)^## (.*)$`)
	block   = regexp.MustCompile("(?ms)^```(yaml)?\n(.*?)^```$")
)

// readDocument reads the document. Every section has commands.
func readDocument(path string) (document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := document{}
	places := heading.FindAllSubmatchIndex(text, -1)
	for i, place := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		var s section
		for _, b := range block.FindAllSubmatch(text[place[1]:end], -1) {
			if len(b[1]) > 0 {
				s.settings = append(s.settings, string(b[2]))
			} else {
				s.commands = append(s.commands, string(b[2]))
			}
		}
		title := string(text[place[2]:place[3]])
		if len(s.commands) == 0 {
			return nil, fmt.Errorf("%s: the section %q has no commands", path, title)
		}
		out[strings.TrimSpace(title)] = s
	}
	return out, nil
}
