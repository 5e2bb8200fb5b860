package ipxe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// maxScript and maxRamdisk are the largest sizes of a boot document and of a file that is loaded, in bytes.
	maxScript, maxRamdisk = 64 << 10, 1 << 30
	// maxRetries is how often a request is repeated after 503 with Retry-After.
	maxRetries = 20
	// maxCommands is the number of commands after which a script that loops without end fails.
	maxCommands = 100000
)

// End is how a boot script ends.
type End string

// Ends of a boot script.
const (
	// Exit means that the firmware tries the next boot device, also when a script has no more commands.
	Exit End = "exit"
	// Boot means that kernel and initrd are loaded.
	Boot     End = "boot"
	PowerOff End = "poweroff"
	Reboot   End = "reboot"
)

// Loaded is a kind of file that was fetched.
type Loaded string

// Kinds of files.
const (
	Script Loaded = "script"
	Kernel Loaded = "kernel"
	Initrd Loaded = "initrd"
)

// Outcome is the result of a boot script.
type Outcome struct {
	End End
	// Arguments is the kernel's command line, for Boot.
	Arguments []string
	// Panic is, for Boot, the error with which the kernel stops at its initrd; nil when it does not.
	Panic error
}

// Loader is the boot code of the network card.
type Loader struct {
	HTTP *http.Client
	// Wait waits for a duration.
	Wait func(context.Context, time.Duration) error
	// OnLoad is called for every file that was fetched. An error ends the script.
	OnLoad func(context.Context, Loaded) error
}

// interpreter is one run of a script.
type interpreter struct {
	*Loader
	lines     []string
	at        int
	kernel    bool
	initrd    bool
	panics    error
	arguments []string
	outcome   *Outcome
	// base is the URL of the script, which the URLs in it are relative to.
	base *url.URL
	// settings are those of "set", and errno.
	settings map[string]string
}

// errno is the last error after any command that failed: a connection that timed out (https://ipxe.org/4c0a6092).
const errno = "0x4c0a6092"

// errCommand is the error of a command that failed. It is handled by ||.
var errCommand = errors.New("command failed")

// Run fetches the script and interprets it to its end.
func (l *Loader) Run(ctx context.Context, url string) (Outcome, error) {
	m := &interpreter{Loader: l, settings: map[string]string{}}
	if err := m.loadScript(ctx, url); err != nil {
		return Outcome{}, err
	}
	for range maxCommands {
		if m.at >= len(m.lines) {
			return Outcome{End: Exit}, nil
		}
		line := strings.TrimSpace(m.lines[m.at])
		m.at++
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ":") {
			continue
		}
		err := m.runLine(ctx, line)
		if ctx.Err() != nil {
			return Outcome{}, context.Cause(ctx)
		}
		if m.outcome != nil {
			return *m.outcome, nil
		}
		if err != nil {
			return Outcome{}, fmt.Errorf("boot script, line %d: %w", m.at, err)
		}
	}
	return Outcome{}, errors.New("the boot script goes round without an end")
}

// loadScript fetches a script.
func (m *interpreter) loadScript(ctx context.Context, address string) error {
	address, err := m.resolve(address)
	if err != nil {
		return err
	}
	script, err := m.fetchText(ctx, address)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(script, "#!ipxe") {
		return fmt.Errorf("%w: %s is no iPXE script", errCommand, address)
	}
	if m.base, err = url.Parse(address); err != nil {
		return fmt.Errorf("%w: %w", errCommand, err)
	}
	m.lines, m.at = strings.Split(script, "\n"), 0
	return m.OnLoad(ctx, Script)
}

func (m *interpreter) fetchText(ctx context.Context, url string) (string, error) {
	var text []byte
	err := m.fetch(ctx, url, func(body io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(body, maxScript))
		return err
	})
	return string(text), err
}

// resolve returns the URL of what a script names (https://ipxe.org/cmd/imgexec: relative to the URI of the script itself).
func (m *interpreter) resolve(address string) (string, error) {
	if m.base == nil {
		return address, nil
	}
	resolved, err := m.base.Parse(address)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errCommand, err)
	}
	return resolved.String(), nil
}

// settingPattern is a setting in a script.
var settingPattern = regexp.MustCompile(`[$][{]([a-z]+)[}]`)

// expand replaces the settings in a word. One that is not set is empty.
func (m *interpreter) expand(word string) string {
	return settingPattern.ReplaceAllStringFunc(word, func(s string) string { return m.settings[s[2:len(s)-1]] })
}

// runLine runs "a || b && c" from left to right.
func (m *interpreter) runLine(ctx context.Context, line string) error {
	var err error
	operator := ""
	var words []string
	flush := func() {
		if operator == "" || operator == "||" && err != nil || operator == "&&" && err == nil {
			if err = m.runCommand(ctx, words); err != nil {
				m.settings["errno"] = errno
			}
		}
		words = nil
	}
	for _, word := range strings.Fields(line) {
		if word == "||" || word == "&&" {
			flush()
			operator = word
			if m.outcome != nil || ctx.Err() != nil {
				return nil
			}
			continue
		}
		words = append(words, m.expand(word))
	}
	flush()
	return err
}

func (m *interpreter) runCommand(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return nil // "command ||" forgives
	}
	operands := withoutOptions(words[1:])
	switch words[0] {
	case "set":
		return m.set(operands)
	case "echo", "ifopen", "dhcp", "ifconf", "imgfree", "isset":
		return nil
	case "goto":
		return m.jumpTo(operands)
	case "sleep":
		return m.sleep(ctx, operands)
	case "chain":
		return m.chain(ctx, operands)
	case "kernel", "imgfetch", "initrd":
		return m.loadImage(ctx, words[0], operands)
	case "imgargs":
		m.arguments = operands[min(1, len(operands)):]
		return nil
	case "boot":
		return m.boot()
	case string(Exit), string(PowerOff), string(Reboot):
		m.outcome = &Outcome{End: End(words[0])}
		return nil
	default:
		return fmt.Errorf("%w: %s: command not found", errCommand, words[0])
	}
}

// withoutOptions returns the words without options. --name and --timeout have a value.
func withoutOptions(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case len(out) > 0: // what follows the first operand is its own, "kernel URL --x" included
			return append(out, words[i:]...)
		case word == "--name" || word == "-n" || word == "--timeout" || word == "-t":
			i++
		case strings.HasPrefix(word, "-"):
		default:
			out = append(out, word)
		}
	}
	return out
}

func (m *interpreter) boot() error {
	if !m.kernel || !m.initrd {
		return fmt.Errorf("%w: boot without a kernel and an initrd", errCommand)
	}
	m.outcome = &Outcome{End: Boot, Arguments: m.arguments, Panic: m.panics}
	return nil
}

func (m *interpreter) set(operands []string) error {
	if len(operands) == 0 {
		return errCommand
	}
	m.settings[operands[0]] = strings.Join(operands[1:], " ")
	return nil
}

func (m *interpreter) jumpTo(operands []string) error {
	for i, line := range m.lines {
		if len(operands) == 1 && strings.TrimSpace(line) == ":"+operands[0] {
			m.at = i + 1
			return nil
		}
	}
	return fmt.Errorf("%w: no label %q", errCommand, operands)
}

func (m *interpreter) sleep(ctx context.Context, operands []string) error {
	if len(operands) != 1 {
		return errCommand
	}
	seconds, err := strconv.Atoi(operands[0])
	if err != nil {
		return fmt.Errorf("%w: sleep %s", errCommand, operands[0])
	}
	return m.Wait(ctx, time.Duration(seconds)*time.Second)
}

func (m *interpreter) chain(ctx context.Context, operands []string) error {
	if len(operands) == 0 {
		return errCommand
	}
	return m.loadScript(ctx, operands[0])
}

// loadImage fetches the kernel or the initrd.
func (m *interpreter) loadImage(ctx context.Context, kind string, operands []string) error {
	if len(operands) == 0 {
		return errCommand
	}
	address, err := m.resolve(operands[0])
	if err != nil {
		return err
	}
	if kind == "kernel" {
		m.arguments = operands[1:]
		err := m.fetch(ctx, address, func(body io.Reader) error {
			n, err := io.Copy(io.Discard, body)
			if err == nil && n == 0 {
				err = fmt.Errorf("%w: %s is empty", errCommand, operands[0])
			}
			return err
		})
		if err != nil {
			return err
		}
		m.kernel = true
		return m.OnLoad(ctx, Kernel)
	}
	err = m.fetch(ctx, address, func(body io.Reader) error {
		// What is in it is the kernel's to find out, later.
		m.panics = findInit(body)
		_, err := io.Copy(io.Discard, body)
		return err
	})
	if err != nil {
		return err
	}
	m.initrd = true
	return m.OnLoad(ctx, Initrd)
}

// fetch gets a URL. It tries again after 503 with Retry-After, as iPXE does.
func (m *interpreter) fetch(ctx context.Context, url string, use func(io.Reader) error) error {
	for range maxRetries {
		wait, err := m.fetchOnce(ctx, url, use)
		if wait == 0 {
			return err
		}
		if err := m.Wait(ctx, wait); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s: not available", errCommand, url)
}

func (m *interpreter) fetchOnce(ctx context.Context, url string, use func(io.Reader) error) (retry time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errCommand, err)
	}
	request.Header.Set("User-Agent", "iPXE/1.21.1+ (rack)")
	response, err := m.HTTP.Do(request)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errCommand, err)
	}
	defer func() { _ = response.Body.Close() }() // nothing more is wanted of it
	if seconds, parseErr := strconv.Atoi(response.Header.Get("Retry-After")); response.StatusCode == http.StatusServiceUnavailable && parseErr == nil {
		return time.Duration(max(1, seconds)) * time.Second, nil
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%w: %s: %s", errCommand, url, response.Status)
	}
	return 0, use(io.LimitReader(response.Body, maxRamdisk))
}
