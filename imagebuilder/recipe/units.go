package recipe

import (
	"fmt"
	"strings"
)

// UnitFile returns the name of the file of the unit: an instance of a template has that of the template.
func UnitFile(unit string) string {
	at := strings.Index(unit, "@")
	if at < 0 {
		return unit
	}
	return unit[:at+1] + unit[strings.LastIndex(unit, "."):]
}

// UnitLinks returns the links in etc/systemd/system that enable the unit, as the section Install of its file says (systemd.unit(5)).
func UnitLinks(unit string, content []byte) ([]string, error) {
	var out []string
	section := ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != "[Install]" {
			continue
		}
		for _, name := range strings.Fields(value) {
			switch strings.TrimSpace(key) {
			case "WantedBy":
				out = append(out, name+".wants/"+unit)
			case "RequiredBy":
				out = append(out, name+".requires/"+unit)
			case "Alias":
				out = append(out, name)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("units.enable: %s has no section Install: something else starts it", unit)
	}
	return out, nil
}
