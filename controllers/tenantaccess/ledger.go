package tenantaccess

import (
	"fmt"
	"sync"
)

// ledger has the sizes of the objects in one cache, by name.
type ledger struct {
	account *account
	plural  string

	mu       sync.Mutex
	isClosed bool
	sizes    map[string]int64
	total    int64
	// next has the objects of a list that is still being read, which will replace the others; nil: none is.
	next      map[string]int64
	nextTotal int64
}

// begin starts a list that will replace the objects of the ledger.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isClosed {
		l.next, l.nextTotal = map[string]int64{}, 0
	}
}

// commit ends the list that begin has started.
func (l *ledger) commit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return nil
	}
	if l.next != nil {
		l.sizes, l.total, l.next, l.nextTotal = l.next, l.nextTotal, nil, 0
	}
	return l.account.keep(l.plural, len(l.sizes), l.total)
}

// put records the size of an object, and returns an error if it or all of them are too large. While a list is read anew, the cache
// holds the old objects too: the larger of the two counts.
func (l *ledger) put(name string, size int64) error {
	if size > maxKeptObject {
		return &tooLargeError{what: fmt.Sprintf("one of its %s takes %s of memory, and the limit is %s", l.plural, mebibytes(size), mebibytes(maxKeptObject))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return nil
	}
	if l.next != nil {
		l.nextTotal += size - l.next[name]
		l.next[name] = size
	} else {
		l.total += size - l.sizes[name]
		l.sizes[name] = size
	}
	return l.account.keep(l.plural, max(len(l.sizes), len(l.next)), max(l.total, l.nextTotal))
}

// drop records that an object was deleted.
func (l *ledger) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		l.nextTotal -= l.next[name]
		delete(l.next, name)
		return
	}
	l.total -= l.sizes[name]
	delete(l.sizes, name)
	if !l.isClosed {
		l.account.lower(l.plural, l.total)
	}
}

// close forgets the objects, because the cache was stopped and its memory is let go. Later changes are not counted.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isClosed, l.sizes, l.next, l.total, l.nextTotal = true, map[string]int64{}, nil, 0, 0
	l.account.forget(l.plural)
}
