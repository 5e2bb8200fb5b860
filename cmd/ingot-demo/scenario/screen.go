package scenario

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/ingot-dev/ingot/cmd/ingot-demo/display"
)

// screen is where the story is told: redrawn in place on a terminal, line by line elsewhere.
type screen struct {
	out     io.Writer
	live    bool
	fd      int
	started time.Time

	mu    sync.Mutex
	title string
	notes []string
	rows  []display.Row
	rolls []string
}

func newScreen(out io.Writer, plain bool) *screen {
	s := &screen{out: out, started: time.Now()}
	if f, ok := out.(*os.File); ok && !plain && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.live, s.fd = true, int(f.Fd())
		fmt.Fprint(out, "\x1b[?25l\x1b[2J")
	}
	return s
}

// step begins a step of the story.
func (s *screen) step(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.title = fmt.Sprintf(format, args...)
	if !s.live {
		fmt.Fprintf(s.out, "%6.1fs  == %s\n", s.elapsed().Seconds(), s.title)
	}
	s.draw()
}

// note tells one thing that happened.
func (s *screen) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%6.1fs  %s", s.elapsed().Seconds(), fmt.Sprintf(format, args...))
	if s.live {
		s.notes = append(s.notes, line)
	} else {
		fmt.Fprintln(s.out, line)
	}
	s.draw()
}

// update shows the fleet as it is now.
func (s *screen) update(rows []display.Row, rolls []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := display.Changes(s.rows, rows)
	for _, line := range rolls {
		if !slices.Contains(s.rolls, line) {
			changes = append(changes, line)
		}
	}
	s.rows, s.rolls = rows, rolls
	if !s.live {
		for _, line := range changes {
			fmt.Fprintf(s.out, "%6.1fs  %s\n", s.elapsed().Seconds(), line)
		}
	}
	s.draw()
}

func (s *screen) draw() {
	if !s.live {
		return
	}
	width, height, err := term.GetSize(s.fd)
	if err != nil || width < 20 || height < 8 {
		width, height = 80, 24
	}
	lines := display.Draw(display.Frame{Title: s.title, Elapsed: s.elapsed(), Rows: s.rows, Rollouts: s.rolls, Notes: s.notes}, width, height-1)
	fmt.Fprint(s.out, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\n\x1b[J")
}

// close gives the terminal back, with the story's notes left in its history.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		return
	}
	s.draw()
	s.live = false
	fmt.Fprint(s.out, "\x1b[?25h\n")
}

func (s *screen) elapsed() time.Duration { return time.Since(s.started) }
