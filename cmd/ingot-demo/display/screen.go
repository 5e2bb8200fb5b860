package display

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Screen shows the progress of the demo: redrawn in place on a terminal, line by line elsewhere.
type Screen struct {
	out     io.Writer
	live    bool
	fd      int
	started time.Time

	mu       sync.Mutex
	title    string
	notes    []string
	rows     []Row
	rollouts []string
}

// NewScreen returns a Screen that writes to out: redrawn in place when out is a terminal and plain is false.
func NewScreen(out io.Writer, plain bool) *Screen {
	s := &Screen{out: out, started: time.Now()}
	if f, ok := out.(interface{ Fd() uintptr }); ok && !plain && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.live, s.fd = true, int(f.Fd())
		fmt.Fprint(out, "\x1b[?25l\x1b[2J")
	}
	return s
}

// Step shows the title of the step that begins.
func (s *Screen) Step(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.title = fmt.Sprintf(format, args...)
	if !s.live {
		fmt.Fprintf(s.out, "%6.1fs  == %s\n", s.Elapsed().Seconds(), s.title)
	}
	s.draw()
}

// Note shows one thing that happened.
func (s *Screen) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%6.1fs  %s", s.Elapsed().Seconds(), fmt.Sprintf(format, args...))
	if s.live {
		s.notes = append(s.notes, line)
	} else {
		fmt.Fprintln(s.out, line)
	}
	s.draw()
}

// Update shows the servers and the rollouts of the latest observation.
func (s *Screen) Update(rows []Row, rollouts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := ChangeLines(s.rows, rows)
	for _, line := range rollouts {
		if !slices.Contains(s.rollouts, line) {
			changes = append(changes, line)
		}
	}
	s.rows, s.rollouts = rows, rollouts
	if !s.live {
		for _, line := range changes {
			fmt.Fprintf(s.out, "%6.1fs  %s\n", s.Elapsed().Seconds(), line)
		}
	}
	s.draw()
}

func (s *Screen) draw() {
	if !s.live {
		return
	}
	width, height, err := term.GetSize(s.fd)
	if err != nil || width < 20 || height < 8 {
		width, height = 80, 24
	}
	lines := Render(Frame{Title: s.title, Elapsed: s.Elapsed(), Rows: s.rows, Rollouts: s.rollouts, Notes: s.notes}, width, height-1)
	fmt.Fprint(s.out, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\n\x1b[J")
}

// Close draws the last frame and leaves it in the history of the terminal.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		return
	}
	s.draw()
	s.live = false
	fmt.Fprint(s.out, "\x1b[?25h\n")
}

// Elapsed returns how long the demo has run.
func (s *Screen) Elapsed() time.Duration { return time.Since(s.started) }
