package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
)

const (
	// readTimeout is how long the inventory of one BMC may take. That of an HGX server is about 300 requests.
	readTimeout = 3 * time.Minute
	// closeTimeout is how long the logouts may take at the end.
	closeTimeout = 15 * time.Second
)

// credentials are the account that every BMC of the range is expected to have.
type credentials struct {
	username, password string
	// caBundle verifies the BMCs' certificates; isInsecure leaves them unverified.
	caBundle   []byte
	isInsecure bool
	// maxRefusals is how many BMCs may refuse the account before no other is tried; 0: any number.
	maxRefusals int
}

// endpoint returns how to log in at a service.
func (c credentials) endpoint(s service) hardware.Endpoint {
	return hardware.Endpoint{Address: serviceURL(s), Username: c.username, Password: c.password, CABundle: c.caBundle, InsecureSkipVerify: c.isInsecure}
}

// serviceURL returns the URL of the service, without the port where that is the usual one.
func serviceURL(s service) string {
	return s.answer.Scheme + "://" + hostAndPort(s.at, s.answer.Scheme)
}

func hostAndPort(at netip.AddrPort, scheme string) string {
	if usual := map[string]uint16{"https": defaultPort, "http": 80}[scheme]; at.Port() == usual {
		if at.Addr().Is6() {
			return "[" + at.Addr().String() + "]"
		}
		return at.Addr().String()
	}
	return net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port())))
}

// allowance limits the logins that are under way, so that never more BMCs refuse the account than may.
type allowance struct {
	mu       sync.Mutex
	changed  *sync.Cond
	limit    int
	underWay int
	refused  int
}

func newAllowance(limit int) *allowance {
	a := &allowance{limit: limit}
	a.changed = sync.NewCond(&a.mu)
	return a
}

// canBegin waits until a login may begin, and is false when none may any more.
//
// A login waits while those under way could use up the limit. Without it: 32 logins begin at once with a wrong password, and 32 accounts have a
// failed login although three were to be the most.
func (a *allowance) canBegin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.limit > 0 && a.refused < a.limit && a.underWay+a.refused >= a.limit {
		a.changed.Wait()
	}
	if a.limit > 0 && a.refused >= a.limit {
		return false
	}
	a.underWay++
	return true
}

// end ends a login that began.
func (a *allowance) end(isRefused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay--
	if isRefused {
		a.refused++
	}
	a.changed.Broadcast()
}

// readAll logs in at each BMC, once, and adds what it reports.
func readAll(ctx context.Context, found []service, c credentials, parallel int, p *progress) error {
	client := redfish.New(redfish.Options{Log: slog.New(slog.DiscardHandler)})
	limit := newAllowance(c.maxRefusals)
	var workers sync.WaitGroup
	queue := make(chan *service)
	for range min(parallel, len(found)) {
		workers.Go(func() {
			for s := range queue {
				readOne(ctx, client, s, c, limit)
				p.add(s.isRead)
			}
		})
	}
	for i := range found {
		queue <- &found[i]
	}
	close(queue)
	workers.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return client.Close(last)
}

// readOne logs in at one BMC and reads its inventory.
func readOne(ctx context.Context, client hardware.BMCOpener, s *service, c credentials, limit *allowance) {
	if s.answer.Scheme == "http" && !c.isInsecure {
		s.problem = "it has no TLS here: no password is sent; turn HTTPS on in the BMC, or give --insecure"
		return
	}
	if ctx.Err() != nil {
		s.problem = "interrupted before the login"
		return
	}
	if !limit.canBegin() {
		s.problem = fmt.Sprintf("no login was tried, because %d BMCs refused the account: check it, or give --max-refusals", c.maxRefusals)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	inventory, err := readInventory(ctx, client, c.endpoint(*s))
	limit.end(hardware.KindOf(err) == hardware.Unauthorized)
	if err != nil {
		s.problem = loginProblem(err)
		return
	}
	s.isRead, s.inventory = true, inventory
}

func readInventory(ctx context.Context, client hardware.BMCOpener, endpoint hardware.Endpoint) (hardware.Inventory, error) {
	opened, err := client.OpenBMC(ctx, endpoint)
	if err != nil {
		return hardware.Inventory{}, err
	}
	return opened.Inventory(ctx)
}

// loginProblem returns the words of the failure, without the address, which stands before it.
func loginProblem(err error) string {
	var known *hardware.Error
	if errors.As(err, &known) && known.Err != nil {
		return known.Op + ": " + string(known.Kind) + ": " + known.Err.Error()
	}
	return err.Error()
}

// bootMAC returns the address of the NIC that the server boots from, or why it is not known. A BMC does not tell which NIC that is: it is the one
// whose name fits the pattern, or the only one, or the only one with a link.
func bootMAC(nics []hardware.NIC, pattern string) (mac, problem string) {
	fitting := slices.Clone(nics)
	if pattern != "" {
		fitting = slices.DeleteFunc(fitting, func(n hardware.NIC) bool {
			matches, err := path.Match(pattern, n.Name)
			return err != nil || !matches
		})
	}
	if len(fitting) > 1 {
		if up := slices.DeleteFunc(slices.Clone(fitting), func(n hardware.NIC) bool { return !n.Up }); len(up) == 1 {
			fitting = up
		}
	}
	switch {
	case len(nics) == 0:
		return "", "boot mac: the BMC reports no NIC, as many do while the server is off: take it from the label, or power the server on once"
	case len(fitting) == 1:
		return fitting[0].MAC, ""
	}
	candidates := "boot mac: one of"
	for _, n := range slices.SortedFunc(slices.Values(nics), func(a, b hardware.NIC) int { return cmp.Compare(a.Name, b.Name) }) {
		candidates += " " + n.Name + "=" + n.MAC
	}
	return "", candidates + "; --boot-nic NAME chooses it for all servers"
}
