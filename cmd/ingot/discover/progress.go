package discover

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// lineInterval is how often progress is shown where it cannot be overwritten; screenInterval where it can.
const (
	lineInterval   = 10 * time.Second
	screenInterval = 200 * time.Millisecond
)

// progress shows how far a command is: one line that is overwritten on a terminal, a line now and then elsewhere.
type progress struct {
	out      io.Writer
	isScreen bool
	done     chan struct{}
	shown    sync.WaitGroup

	mu                sync.Mutex
	what, good        string
	total, all, count int
}

// newProgress begins to show progress: "WHAT: ALL of TOTAL, COUNT GOOD".
func newProgress(out io.Writer, what, good string, total int) *progress {
	p := &progress{out: out, what: what, good: good, total: total, done: make(chan struct{})}
	file, isFile := out.(*os.File)
	p.isScreen = isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
	interval := lineInterval
	if p.isScreen {
		interval = screenInterval
	}
	p.shown.Go(func() { p.show(time.NewTicker(interval)) })
	return p
}

// add counts one more.
func (p *progress) add(isGood bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all++
	if isGood {
		p.count++
	}
}

func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s: %d of %d, %d %s", p.what, p.all, p.total, p.count, p.good)
}

func (p *progress) show(ticker *time.Ticker) {
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if p.isScreen {
				fmt.Fprint(p.out, "\r\x1b[K"+p.text())
			} else {
				fmt.Fprintln(p.out, p.text())
			}
		case <-p.done:
			return
		}
	}
}

// end removes the line from a terminal.
func (p *progress) end() {
	close(p.done)
	p.shown.Wait()
	if p.isScreen {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
