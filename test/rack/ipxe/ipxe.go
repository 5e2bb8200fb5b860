package ipxe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxScript bounds a boot document, maxRamdisk what iPXE loads into memory.
	maxScript, maxRamdisk = 64 << 10, 1 << 30
	// maxRetries is how often a 503 with Retry-After is asked again.
	maxRetries = 20
	// maxCommands ends a script that goes round without ever waiting.
	maxCommands = 100000
)

// End is how a boot script ends.
type End string

// Ends of a boot script.
const (
	// Exit: the firmware takes the next boot device. A script that runs out ends so, too.
	Exit End = "exit"
	// Boot: kernel and initrd are loaded.
	Boot     End = "boot"
	PowerOff End = "poweroff"
	Reboot   End = "reboot"
)

// Loaded is something that was fetched.
type Loaded string

// What is fetched.
const (
	Script Loaded = "script"
	Kernel Loaded = "kernel"
	Initrd Loaded = "initrd"
)

// Plan is what a boot script came to.
type Outcome struct {
	End End
	// Arguments is the kernel's command line, for Boot.
	Arguments []string
	// Panic is why the kernel does not come further than its initrd, for Boot; nil: it does.
	Panic error
}

// Loader is the network card's boot code.
type Loader struct {
	HTTP *http.Client
	// Wait lets time pass.
	Wait func(context.Context, time.Duration) error
	// OnLoad is called with everything that was fetched; an error ends the script.
	OnLoad func(context.Context, Loaded) error
}

// machine is one run of the interpreter.
type interpreter struct {
	*Loader
	lines     []string
	at        int
	kernel    bool
	initrd    bool
	panics    error
	arguments []string
	outcome   *Outcome
}

// errCommand is a failed command: || takes it.
var errCommand = errors.New("command failed")

// Run fetches the script and interprets it to its end.
func (l *Loader) Run(ctx context.Context, url string) (Outcome, error) {
	m := &interpreter{Loader: l}
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

// load fetches a script.
func (m *interpreter) loadScript(ctx context.Context, url string) error {
	script, err := m.fetchText(ctx, url)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(script, "#!ipxe") {
		return fmt.Errorf("%w: %s is no iPXE script", errCommand, url)
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

// line runs "a || b && c" from the left.
func (m *interpreter) runLine(ctx context.Context, line string) error {
	var err error
	operator := ""
	var words []string
	flush := func() {
		if operator == "" || operator == "||" && err != nil || operator == "&&" && err == nil {
			err = m.runCommand(ctx, words)
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
		words = append(words, word)
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
	case "echo", "set", "ifopen", "dhcp", "ifconf", "imgfree", "isset":
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
		if !m.kernel || !m.initrd {
			return fmt.Errorf("%w: boot without a kernel and an initrd", errCommand)
		}
		m.outcome = &Outcome{End: Boot, Arguments: m.arguments, Panic: m.panics}
		return nil
	case string(Exit), string(PowerOff), string(Reboot):
		m.outcome = &Outcome{End: End(words[0])}
		return nil
	default:
		return fmt.Errorf("%w: %s: command not found", errCommand, words[0])
	}
}

// positional leaves options out; --name and --timeout take a value.
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

// image loads the kernel or the initrd, the bytes themselves.
func (m *interpreter) loadImage(ctx context.Context, kind string, operands []string) error {
	if len(operands) == 0 {
		return errCommand
	}
	if kind == "kernel" {
		m.arguments = operands[1:]
		err := m.fetch(ctx, operands[0], func(body io.Reader) error {
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
	err := m.fetch(ctx, operands[0], func(body io.Reader) error {
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

// fetch gets a URL; 503 with Retry-After is asked again, as iPXE does.
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
