package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

// leaseFlag is the flag that names the Lease.
const leaseFlag = "manager-lease"

// leaseTimeout limits the request for the Lease, which a command does before its own requests.
const leaseTimeout = 5 * time.Second

// Manager is what the Lease of the leader election says about ingot-manager.
type Manager struct {
	// Outage is set when no manager works.
	Outage *leaderlease.Outage
	// Unknown says why that cannot be told; empty: it can.
	Unknown string
	// HasNoRenewal is true where Unknown is because there is no Lease of that name, or one that its manager does not renew.
	HasNoRenewal bool
}

// Text says what a person must know about the manager. It is empty when one works.
func (m Manager) Text() string {
	if m.Outage != nil {
		return m.Outage.Message
	}
	return m.Unknown
}

// Manager returns what Client has read about the manager.
func (f *Flags) Manager() Manager { return f.manager }

// reportManager reads the Lease and writes one line to the command's standard error when no manager works. What was last stored looks the same
// then as what is current, so the line stands before the answer. A Lease that cannot be read is no reason to write anything: most users may not.
// One that does not exist, or that a manager without leader election does not renew, is a note: nothing else would say that the manager is dead.
func (f *Flags) reportManager(cmd *cobra.Command, k client.Reader, clock *serverClock) error {
	namespace, name, found := strings.Cut(f.lease, "/")
	if !found || namespace == "" || name == "" {
		return cli.Usagef(cmd, "--manager-lease %s: expected NAMESPACE/NAME", f.lease)
	}
	f.manager = readManager(cmd.Context(), k, client.ObjectKey{Namespace: namespace, Name: name}, cmd.Flags().Changed(leaseFlag), clock.now)
	var err error
	switch {
	case f.manager.Outage != nil:
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), "warning:", f.manager.Outage.Message)
	case f.manager.HasNoRenewal:
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), "note:", f.manager.Unknown)
	}
	return err
}

// readManager judges the Lease by a clock, which is asked after the Lease is read. Where there is none, and it was not named by the user, the
// Leases of managers in other namespaces or of other names are looked for. One that exists is always judged itself. Without it: 1. the manager
// dies. 2. Somebody has a Lease with the manager's label in a namespace of his own, renewed by a program or with a time to come. 3. No command
// says that the manager is dead.
func readManager(ctx context.Context, k client.Reader, key client.ObjectKey, isNamed bool, now func() time.Time) Manager {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := k.Get(ctx, key, lease)
	if apierrors.IsNotFound(err) && !isNamed {
		if found := findLease(ctx, k, now()); found != nil {
			lease, key, err = found, client.ObjectKeyFromObject(found), nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return Manager{HasNoRenewal: true, Unknown: fmt.Sprintf("there is no Lease %s, so whether an ingot-manager works is unknown: where none was ever started, start one (kubectl apply -k config/default); where it has another Lease (namespace, leaderElection.name), name that with --manager-lease: kubectl get leases -A -l %s=%s lists them", key, leaderlease.Label, leaderlease.LabelValue)}
	case apierrors.IsForbidden(err):
		return Manager{Unknown: fmt.Sprintf("you may not read the Lease %s, so whether an ingot-manager works is unknown: Role ingot-lease-reader in namespace %s allows it", key, key.Namespace)}
	case err != nil:
		return Manager{Unknown: fmt.Sprintf("the Lease %s cannot be read, so whether an ingot-manager works is unknown: %v", key, err)}
	}
	if since := leaderlease.DisabledSince(lease); since != nil {
		return Manager{HasNoRenewal: true, Unknown: fmt.Sprintf("the ingot-manager that was started at %s works without leader election and renews no Lease, so whether it still works is unknown: kubectl get pods -n %s",
			since.UTC().Format(time.RFC3339), key.Namespace)}
	}
	outage := leaderlease.Judge(key.Namespace, key.Name, lease, now())
	if outage != nil && !isNamed {
		outage.Message += otherLease(ctx, k, key, now())
	}
	return Manager{Outage: outage}
}

// otherLease says beside an outage that another Lease with the manager's label shows a manager: where namespace or name were changed, the old
// Lease is left.
func otherLease(ctx context.Context, k client.Reader, key client.ObjectKey, now time.Time) string {
	found := findLease(ctx, k, now)
	if found == nil || client.ObjectKeyFromObject(found) == key || leaderlease.Judge(found.Namespace, found.Name, found, now) != nil {
		return ""
	}
	return fmt.Sprintf("; the Lease %[1]s/%[2]s has the label of a manager too: if yours has that one now, name it with --manager-lease %[1]s/%[2]s, and delete the Lease %[3]s",
		found.Namespace, found.Name, key)
}

// findLease returns the Lease that tells most of the present, of those that have the manager's label. It is nil where there is none, or where the
// user may not list them.
func findLease(ctx context.Context, k client.Reader, now time.Time) *coordinationv1.Lease {
	var leases coordinationv1.LeaseList
	if err := k.List(ctx, &leases, client.MatchingLabels{leaderlease.Label: leaderlease.LabelValue}); err != nil {
		return nil
	}
	return leaderlease.Newest(leases.Items, now)
}

// serverClock is the clock of the API server as the Date header of its last answer has it. The clock of the machine that runs the command may be
// wrong by more than the Lease's duration.
type serverClock struct {
	next http.RoundTripper

	mu   sync.Mutex
	date time.Time
	at   time.Time
	// failed is why no connection was made; nil: one was.
	failed error
}

// connectError returns why no connection to the server was made, where the first request has failed for that.
func (c *serverClock) connectError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// RoundTrip implements http.RoundTripper.
func (c *serverClock) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	// Only what ends a connection before it is made counts: a server that is slow may answer the command's own requests.
	var notMade *net.OpError
	c.mu.Lock()
	if c.failed = nil; errors.As(err, &notMade) && notMade.Op == "dial" {
		c.failed = notMade
	}
	c.mu.Unlock()
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.date, c.at = date, time.Now()
	}
	return response, nil
}

// now returns the server's time or, where it has sent none, that of this machine.
func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.date.Add(time.Since(c.at))
}
