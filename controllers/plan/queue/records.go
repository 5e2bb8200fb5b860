package queue

import (
	"cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// EntriesOf returns the entries of the hosts for an operation.
func EntriesOf(records []v1alpha1.HostRecord, operation hardware.Operation) []Entry {
	var entries []Entry
	for i := range records {
		r := &records[i]
		w, q := r.Status.Wanted, r.Status.Queue
		switch {
		case w.IsOpen() && IsLimited(w) && w.Operation == string(operation):
			entries = append(entries, Entry{Host: r.Name, Owner: OwnerOf(r, operation), State: AtWork, Since: w.Since.Time})
		case q != nil && q.Operation == string(operation):
			entries = append(entries, Entry{Host: r.Name, Owner: OwnerOf(r, operation), State: Waiting, Since: q.Since.Time})
		}
		if served, ok := lastServed(r, operation); ok {
			entries = append(entries, served)
		}
	}
	return entries
}

// IsLimited reports whether the installer limits on how many hosts it does the work of the attempt. The erase of nothing is one of them, because it ends the
// deployment, and Ironic counts a node in the state deleting as one that is cleaned. Without it: fifty hosts are released without an erase, and Ironic
// refuses the erase of the host whose turn it is.
func IsLimited(w *v1alpha1.WantedAttempt) bool {
	return w.Operation == string(hardware.OpInstall) || w.Operation == string(hardware.OpErase)
}

// OwnerOf returns the tenant whose host it is: the one that it is to be installed for, or the one whose data is erased.
func OwnerOf(r *v1alpha1.HostRecord, operation hardware.Operation) string {
	if operation == hardware.OpInstall {
		return cmp.Or(r.Spec.Tenant, r.Status.LastTenant)
	}
	return r.Status.LastTenant
}

// lastServed returns when the work was last begun for the tenant that the host had then.
func lastServed(r *v1alpha1.HostRecord, operation hardware.Operation) (Entry, bool) {
	switch {
	case operation == hardware.OpInstall && r.Status.Wanted != nil && r.Status.Wanted.Operation == string(operation):
		return Entry{Host: r.Name, Owner: r.Status.LastTenant, State: Served, Since: r.Status.Wanted.Since.Time}, true
	case operation == hardware.OpInstall && r.Status.Installed != nil:
		return Entry{Host: r.Name, Owner: r.Status.LastTenant, State: Served, Since: r.Status.Installed.At.Time}, true
	case operation == hardware.OpErase && r.Status.Erased != nil:
		return Entry{Host: r.Name, Owner: r.Status.Erased.Tenant, State: Served, Since: r.Status.Erased.At.Time}, true
	}
	return Entry{}, false
}
