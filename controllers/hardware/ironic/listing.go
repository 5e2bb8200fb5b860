package ironic

import (
	"context"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// listing holds what was last read of the nodes.
type listing struct {
	mu sync.Mutex
	// read is when the list was read, and turn its turn: lists and own changes are in one sequence.
	read   time.Time
	turn   int64
	byHost marks
	names  names
	// own holds what Ironic answered to own changes, by host UID, until a list that began later.
	own map[string]change
	// last is the last turn that was given.
	last int64
	// failedAt, failedWith and failure are of the last read of the list, if that failed: when, with which credentials and why.
	failedAt   time.Time
	failedWith Credentials
	failure    error
}

// change is what is known of a node since an own change.
type change struct {
	node node
	turn int64
	// asked says that another provision or power state was requested: what Ironic made of it is in the next list.
	asked bool
}

// nodeName returns the name of a node that is created for the host. No part of it can contain a tilde, and Ironic allows one.
func nodeName(host hardware.Host) string { return host.Namespace + "~" + host.Name }

// find returns the node of the host as last read or changed, and whether it is being changed: the one with its record, else the one that has the name which the host's
// node must have. Its uuid is empty when there is none.
func (i *Installer) find(ctx context.Context, host hardware.Host) (n node, asked bool, err error) {
	n, asked, err = i.lookUp(ctx, host)
	return i.seen.withProof(n), asked, err
}

// lookUp is find without what this process has seen of the node's work.
func (i *Installer) lookUp(ctx context.Context, host hardware.Host) (n node, asked bool, err error) {
	l := &i.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := i.renewList(ctx); err != nil {
		return node{}, false, err
	}
	marked, isMarked, err := l.byHost.find(host)
	if err != nil {
		return node{}, false, err
	}
	if own, ok := l.own[host.UID]; ok {
		return own.node, own.asked, l.names.conflict(own.node, host)
	}
	if isMarked {
		return marked, false, l.names.conflict(marked, host)
	}
	n, err = l.names.find(firstOf(host.InstallerNode, nodeName(host)), host)
	return n, false, err
}

// renewList reads the list if there is none or it is older than Options.ListAge. The caller holds the lock.
func (i *Installer) renewList(ctx context.Context) error {
	now := i.options.Clock()
	if i.listing.byHost != nil && isWithin(now.Sub(i.listing.read), i.options.ListAge) {
		return nil
	}
	return i.readListOnce(ctx, now)
}

// isWithin reports whether the age is below the limit. A negative one is that of a clock that was set: what has that age may be of any.
func isWithin(age, limit time.Duration) bool { return age >= 0 && age < limit }

// readListOnce reads the list, or returns the failure of a read with the same credentials that has just ended. Without it: Ironic accepts connections and answers nothing, a thousand
// hosts wait for the list one after the other, each until the time-out, and hosts of other providers find no worker.
func (i *Installer) readListOnce(ctx context.Context, now time.Time) error {
	l := &i.listing
	credentials, err := i.client.credentialsNow(ctx)
	if err != nil {
		return err
	}
	if l.failure != nil && credentials == l.failedWith && isWithin(now.Sub(l.failedAt), i.options.ListAge) {
		return l.failure
	}
	err = i.readList(ctx)
	l.failure, l.failedAt, l.failedWith = err, i.options.Clock(), credentials
	if ctx.Err() != nil {
		l.failure = nil // the caller has ended it
	}
	return err
}

// readList reads all nodes, page by page. The caller holds the lock: whoever else needs the list waits for it and reads none.
func (i *Installer) readList(ctx context.Context) error {
	l := &i.listing
	l.last++
	turn := l.last
	all, err := i.listNodes(ctx)
	if err != nil {
		return err
	}
	// A list that takes longer than it is used would be old at once, and every caller would read another one.
	l.read, l.turn = i.options.Clock(), turn
	l.byHost, l.names = make(marks, len(all)), newNames(len(all))
	for _, n := range all {
		l.names.add(n)
		if n.record.host == "" {
			continue
		}
		l.byHost[n.record.host] = append(l.byHost[n.record.host], n)
		if own, isChanged := l.own[n.record.host]; !isChanged || own.turn < turn {
			i.seen.listed(n, l.read)
		}
	}
	for uid, own := range l.own {
		if own.turn < turn {
			delete(l.own, uid)
		}
	}
	for _, uid := range i.powers.pending() {
		if _, isNewer := l.own[uid]; !isNewer {
			i.powers.listed(uid, l.byHost.only(uid))
		}
	}
	return nil
}

// note keeps what is known of the host's node after an own change.
func (i *Installer) note(host hardware.Host, n node, asked bool) {
	l := &i.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	if l.own == nil {
		l.own = map[string]change{}
	}
	l.own[host.UID] = change{node: n, turn: l.last, asked: asked}
}

// failed makes the next call log in again when Ironic refuses the version or the login, and returns the error.
func (i *Installer) failed(err error) error {
	if kind := hardware.KindOf(err); kind == hardware.Unauthorized || kind == hardware.Unsupported {
		i.client.forget()
	}
	return err
}
