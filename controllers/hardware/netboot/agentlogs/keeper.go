package agentlogs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

const (
	// saveInterval is the least time between two writes of the log of one host. A thousand hosts at work write 8 objects a second.
	saveInterval = 2 * time.Minute
	// firstSave is when the first lines are written: an agent that fails does so early.
	firstSave = 20 * time.Second
	// keepTime is how long a log stays in memory after its last chunk.
	keepTime = 15 * time.Minute
	// saveTimeout limits one write.
	saveTimeout = 15 * time.Second
	// runInterval is how often Run looks which logs are due.
	runInterval = 5 * time.Second
	// burst and refill limit the chunks of one host: so many at once, then one in each interval. A chunk is added to 64 KiB of text.
	burst  = 32
	refill = 500 * time.Millisecond
)

// Store stores the log of a host.
type Store interface {
	// SaveLog stores the log, unless one is stored that is not older.
	SaveLog(ctx context.Context, log Log) error
}

// Keeper keeps the logs of agents. It is safe for concurrent use.
type Keeper struct {
	store Store
	clock func() time.Time
	log   *slog.Logger

	mu sync.Mutex
	// entries holds a log for each host whose agent is at work, 64 KiB at most.
	entries map[string]*entry
}

// entry is the log of a host and what is stored of it.
type entry struct {
	log Log
	// savedEnd is how much of the log is stored, and dueAt when the rest is.
	savedEnd int64
	dueAt    time.Time
	// tokens and filledAt are its token bucket.
	tokens   int
	filledAt time.Time
}

// New returns a Keeper that writes to the store. clock nil means time.Now.
func New(store Store, clock func() time.Time, log *slog.Logger) *Keeper {
	if clock == nil {
		clock = time.Now
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{store: store, clock: clock, log: log, entries: map[string]*entry{}}
}

// Add adds a chunk to the log of a boot and returns the offset that is wanted next. isLimited is true when the host sends too much. log says whose the
// chunk is; its text is not used. secrets are replaced in the text.
func (k *Keeper) Add(log Log, chunk protocol.LogChunk, secrets []string) (next int64, isLimited bool) {
	now := k.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[log.HostUID]
	if e == nil || e.log.Attempt != log.Attempt || e.log.Boot != log.Boot {
		log.Text, log.End = "", 0
		tokens, filledAt := burst, now
		if e != nil {
			tokens, filledAt = e.tokens, e.filledAt
		}
		e = &entry{log: log, dueAt: now.Add(firstSave), tokens: tokens, filledAt: filledAt}
		k.entries[log.HostUID] = e
	}
	if refilled := int(now.Sub(e.filledAt) / refill); refilled > 0 {
		e.tokens, e.filledAt = min(burst, e.tokens+refilled), now
	}
	if e.tokens <= 0 {
		return 0, true
	}
	e.tokens--
	e.log.At = now
	return e.log.add(chunk, secrets), false
}

// Finish has the rest of the log of a host written soon: its attempt has ended.
func (k *Keeper) Finish(hostUID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[hostUID]; e != nil {
		e.dueAt = k.clock()
	}
}

// Run writes the logs that are due until ctx ends, and then all of them.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(runInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			k.SaveDue(ctx)
		case <-ctx.Done():
			k.mu.Lock()
			for _, e := range k.entries {
				e.dueAt = time.Time{}
			}
			k.mu.Unlock()
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
			defer stop()
			k.SaveDue(last)
			return nil
		}
	}
}

// NeedLeaderElection returns false: every replica serves agents.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start is Run for controller-runtime.
func (k *Keeper) Start(ctx context.Context) error { return k.Run(ctx) }

// SaveDue writes the logs that are due, one after the other, so that the API server gets no burst.
func (k *Keeper) SaveDue(ctx context.Context) {
	for _, log := range k.takeDue() {
		saveCtx, stop := context.WithTimeout(ctx, saveTimeout)
		err := k.store.SaveLog(saveCtx, log)
		stop()
		if err != nil {
			k.log.Warn("an agent's log is not stored", "host", log.Namespace+"/"+log.Name, "attempt", log.Attempt, "error", err)
			continue
		}
		k.noteSaved(log)
	}
}

// takeDue returns the logs that are due, and forgets those that nobody adds to any more.
func (k *Keeper) takeDue() []Log {
	now := k.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	var due []Log
	for uid, e := range k.entries {
		switch {
		case e.savedEnd < e.log.End && !now.Before(e.dueAt):
			e.dueAt = now.Add(saveInterval)
			due = append(due, e.log)
		case e.log.At.Add(keepTime).Before(now):
			delete(k.entries, uid)
		}
	}
	return due
}

func (k *Keeper) noteSaved(log Log) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[log.HostUID]; e != nil && e.log.Attempt == log.Attempt && e.log.Boot == log.Boot {
		e.savedEnd = max(e.savedEnd, log.End)
	}
}
