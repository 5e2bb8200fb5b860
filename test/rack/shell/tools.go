package shell

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// errNoMatch makes the exit status 1 without a message, as grep does when nothing matches.
var errNoMatch = errors.New("no match")

// tools returns the programs that every system has.
func (r *run) tools() map[string]Program {
	return map[string]Program{
		echoProgram: func(c Call) error { return printLine(c, strings.Join(c.Arguments, " ")) }, "cat": r.cat, "grep": grep, "sed": r.sed, "wc": wc, "tr": translate, "readlink": r.readlink,
		"basename": func(c Call) error {
			if len(c.Arguments) == 0 {
				return errors.New("missing operand")
			}
			return printLine(c, path.Base(c.Arguments[0]))
		},
		lookProgram: r.look,
		"mv":        r.move,
		"sleep":     func(Call) error { return nil },
		"sh":        r.runShell, "bash": r.runShell, "dash": r.runShell,
	}
}

// look prints the names of programs that the machine has, and fails when one is missing.
func (r *run) look(c Call) error {
	for _, word := range c.Arguments {
		name := path.Base(word)
		program, known := r.machine.Programs[name]
		if known && program == nil || !known && r.tools()[name] == nil {
			return errNoMatch
		}
		if err := printLine(c, word); err != nil {
			return err
		}
	}
	return nil
}

func printLine(c Call, line string) error {
	_, err := fmt.Fprintln(c.Stdout, line)
	return err
}

// readInputs reads the named files, or standard input when none is named.
func (r *run) readInputs(c Call, names []string) (string, error) {
	if len(names) == 0 {
		text, err := io.ReadAll(c.Stdin)
		return string(text), err
	}
	var out strings.Builder
	for _, name := range names {
		text, err := r.machine.Files.ReadFile(name)
		if err != nil {
			return "", err
		}
		out.Write(text)
	}
	return out.String(), nil
}

func (r *run) cat(c Call) error {
	text, err := r.readInputs(c, c.Arguments)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Stdout, text)
	return err
}

// move moves one file to another name.
func (r *run) move(c Call) error {
	if len(c.Arguments) != 2 {
		return errors.New("only mv FILE FILE is simulated")
	}
	content, err := r.machine.Files.ReadFile(c.Arguments[0])
	if err != nil {
		return err
	}
	if err := r.machine.Files.WriteFile(c.Arguments[1], content); err != nil {
		return err
	}
	r.machine.Files.Remove(c.Arguments[0])
	return nil
}

// runShell runs a script given with -c or in a file.
func (r *run) runShell(c Call) error {
	for i, word := range c.Arguments {
		if strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") && i+1 < len(c.Arguments) {
			return r.machine.Run(c.Arguments[i+1], c.Environment)
		}
		if !strings.HasPrefix(word, "-") {
			text, err := r.machine.Files.ReadFile(word)
			if err != nil {
				return err
			}
			return r.machine.Run(string(text), c.Environment, c.Arguments[i+1:]...)
		}
	}
	return nil
}

// readlink prints the target of a link. With -f it prints the path of a file that is not a link.
func (r *run) readlink(c Call) error {
	follow := false
	for _, word := range c.Arguments {
		if word == "-f" {
			follow = true
			continue
		}
		target, ok := r.machine.Files.Readlink(path.Clean(word))
		if !ok && !follow {
			return errNoMatch
		}
		if !ok {
			target = path.Clean(word)
		}
		return printLine(c, target)
	}
	return errors.New("missing operand")
}

// grep supports -v, -c, -q, -i, -e and basic regular expressions, on standard input.
func grep(c Call) error {
	options, patterns, err := grepOptions(c.Arguments)
	if err != nil {
		return err
	}
	expression := strings.Join(patterns, "|")
	if options['i'] {
		expression = "(?i)" + expression
	}
	matcher, err := regexp.Compile(expression)
	if err != nil {
		return err
	}
	return selectLines(c, options['c'], options['q'], func(line string) bool { return matcher.MatchString(line) != options['v'] })
}

func grepOptions(words []string) (options map[rune]bool, patterns []string, err error) {
	options = map[rune]bool{}
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") || len(words[i]) == 1 {
			if len(patterns) == 0 {
				patterns = append(patterns, translateBasic(words[i]))
			}
			continue
		}
		for _, letter := range words[i][1:] {
			if !strings.ContainsRune("vcqie", letter) {
				return nil, nil, fmt.Errorf("option -%c is not simulated", letter)
			}
			options[letter] = true
			if letter == 'e' && i+1 < len(words) {
				i++
				patterns = append(patterns, translateBasic(words[i]))
			}
		}
	}
	return options, patterns, nil
}

func selectLines(c Call, count, quiet bool, chosen func(string) bool) error {
	text, err := io.ReadAll(c.Stdin)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if !chosen(line) {
			continue
		}
		n++
		if !count && !quiet {
			_ = printLine(c, line)
		}
	}
	if count {
		_ = printLine(c, fmt.Sprint(n))
	}
	if n == 0 {
		return errNoMatch
	}
	return nil
}

// translateBasic translates a basic regular expression into Go's syntax. In a basic expression some characters are special
// only after a backslash.
func translateBasic(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch ch := pattern[i]; {
		case ch == '\\' && i+1 < len(pattern):
			i++
			if !strings.ContainsRune("(){}|+?", rune(pattern[i])) {
				out.WriteByte('\\')
			}
			out.WriteByte(pattern[i])
		case strings.ContainsRune("(){}|+?", rune(ch)):
			out.WriteByte('\\')
			out.WriteByte(ch)
		default:
			out.WriteByte(ch)
		}
	}
	return out.String()
}

// sed supports `sed -n 's/PATTERN/REPLACEMENT/p' [FILE]`.
func (r *run) sed(c Call) error {
	if len(c.Arguments) < 2 || c.Arguments[0] != "-n" {
		return errors.New("only sed -n s///p is simulated")
	}
	parts := strings.Split(c.Arguments[1], "/")
	if len(parts) != 4 || parts[0] != "s" || parts[3] != "p" {
		return fmt.Errorf("only s///p is simulated, not %s", c.Arguments[1])
	}
	matcher, err := regexp.Compile(translateBasic(parts[1]))
	if err != nil {
		return err
	}
	text, err := r.readInputs(c, c.Arguments[2:])
	if err != nil {
		return err
	}
	replacement := regexp.MustCompile(`\\([0-9])`).ReplaceAllString(parts[2], "$${$1}")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if matcher.MatchString(line) {
			_ = printLine(c, matcher.ReplaceAllString(line, replacement))
		}
	}
	return nil
}

// wc counts lines.
func wc(c Call) error {
	text, err := io.ReadAll(c.Stdin)
	if err != nil {
		return err
	}
	return printLine(c, fmt.Sprint(strings.Count(string(text), "\n")))
}

// translate is tr: `tr SET1 SET2` with sets of one character, and `tr -cd SET` with ranges.
func translate(c Call) error {
	text, err := io.ReadAll(c.Stdin)
	if err != nil {
		return err
	}
	if len(c.Arguments) != 2 {
		return errors.New("only tr SET1 SET2 and tr -cd SET are simulated")
	}
	second := strings.ReplaceAll(c.Arguments[1], `\n`, "\n")
	if c.Arguments[0] == "-cd" {
		kept, err := regexp.Compile("[^" + second + "]")
		if err != nil {
			return err
		}
		_, err = c.Stdout.Write(kept.ReplaceAll(text, nil))
		return err
	}
	_, err = io.WriteString(c.Stdout, strings.ReplaceAll(string(text), strings.ReplaceAll(c.Arguments[0], `\n`, "\n"), second))
	return err
}
