package console

import (
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
)

// clear clears the screen of a terminal and puts the cursor in its corner: ECMA-48, ED and CUP.
const clear = "\x1b[2J\x1b[H"

// Screen shows the log or a page. It is safe for concurrent use.
type Screen struct {
	// Log is where the log goes while no page is shown.
	Log io.Writer
	// WriteConsoles writes the text to each console of the machine.
	WriteConsoles func(text string)
	// QuietKernel has the kernel write its messages to the consoles no more, or again.
	QuietKernel func(isQuiet bool)

	mu      sync.Mutex
	isShown bool
	secrets []string
}

// AddSecret has pages shown without the secret. An empty one changes nothing.
func (s *Screen) AddSecret(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret != "" {
		s.secrets = append(s.secrets, secret)
	}
}

// Write implements io.Writer for the log. While a page is shown, it writes nothing: the log is kept elsewhere too.
func (s *Screen) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShown {
		return len(line), nil
	}
	return s.Log.Write(line)
}

// Show shows the page on all consoles.
func (s *Screen) Show(page Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isShown {
		s.QuietKernel(true)
	}
	s.isShown = true
	// The terminal's driver returns the carriage.
	text := clear + strings.Join(page.Lines(), "\n") + "\n"
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	s.WriteConsoles(text)
}

// Hide clears the page, if one is shown, and goes on with the log.
func (s *Screen) Hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isShown {
		return
	}
	s.isShown = false
	s.WriteConsoles(clear)
	s.QuietKernel(false)
}

// consolePattern is the form of a line of /proc/consoles: the name of the console, and whether it can be read (R) and written (W).
var consolePattern = regexp.MustCompile(`^([A-Za-z0-9]+)\s+[-R]W`)

// Consoles returns the paths of the consoles' devices, /dev/console where the kernel names none.
func Consoles(root fs.FS) []string {
	text, err := fs.ReadFile(root, "proc/consoles")
	var out []string
	for line := range strings.Lines(string(text)) {
		if match := consolePattern.FindStringSubmatch(line); err == nil && match != nil {
			out = append(out, path.Join("/dev", match[1]))
		}
	}
	if len(out) == 0 {
		return []string{"/dev/console"}
	}
	return out
}
