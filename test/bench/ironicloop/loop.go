package ironicloop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

// microversion is the one that Ingot uses too with this Ironic, so that both are answered alike.
const microversion = "1.82"

// Loop is one client of an Ironic without authentication. It makes one run at a time.
type Loop struct {
	// Workers is the number of nodes of which something is requested at the same time.
	Workers int
	// Interval is the time from the beginning of a list to that of the next one.
	Interval time.Duration
	// PageSize is the number of nodes in one page of a list.
	PageSize int

	service *gophercloud.ServiceClient
}

// New returns a Loop for the Ironic at the URL. A connection for each worker and for the list stays open.
func New(endpoint string, workers int, interval time.Duration, pageSize int) (*Loop, error) {
	service, err := noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: endpoint + "/v1/"})
	if err != nil {
		return nil, fmt.Errorf("connect to Ironic: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = workers + 1
	service.HTTPClient = http.Client{Transport: transport}
	service.Microversion = microversion
	return &Loop{Workers: workers, Interval: interval, PageSize: pageSize, service: service}, nil
}

// Node is what a list has of a node.
type Node struct {
	UUID, State, Power, TargetPower, Error string
	// Changed is when the provision state changed last.
	Changed time.Time
}

// fields are those of a Node.
var fields = []string{"uuid", "provision_state", "power_state", "target_power_state", "last_error", "provision_updated_at"}

// List returns every node, page by page. It goes by the marker, because gophercloud looks for the address of the next page where Ironic does not write it.
func (l *Loop) List(ctx context.Context) ([]Node, error) {
	var all []Node
	for marker := ""; ; {
		var page []nodes.Node
		err := nodes.List(l.service, nodes.ListOpts{Fields: fields, Limit: l.PageSize, Marker: marker}).EachPage(ctx, func(_ context.Context, p pagination.Page) (bool, error) {
			var err error
			page, err = nodes.ExtractNodes(p)
			return false, err
		})
		if err != nil {
			return nil, fmt.Errorf("list Ironic's nodes: %w", err)
		}
		for _, n := range page {
			all = append(all, Node{UUID: n.UUID, State: n.ProvisionState, Power: n.PowerState, TargetPower: n.TargetPowerState, Error: n.LastError, Changed: n.ProvisionUpdatedAt})
		}
		if len(page) < l.PageSize {
			return all, nil
		}
		marker = page[len(page)-1].UUID
	}
}

// next is what a node needs: a request, nothing, because it is done, or else to wait.
type next struct {
	isDone  bool
	request func(context.Context) error
	err     error
}

// run lists the nodes and makes the requests until every node is done. Nodes that step is not asked about stay as they are.
func (l *Loop) run(ctx context.Context, uuids map[string]bool, step func(Node) next) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &board{busy: map[string]bool{}, slots: make(chan struct{}, l.Workers)}
	defer b.group.Wait()
	for {
		began := time.Now()
		busy, err := b.atWork()
		if err != nil {
			return err
		}
		all, err := l.List(ctx)
		if err != nil {
			return err
		}
		idle := slices.DeleteFunc(all, func(n Node) bool { return !uuids[n.UUID] || busy[n.UUID] })
		done, err := b.advance(ctx, idle, step)
		if err != nil || done == len(uuids) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(l.Interval - time.Since(began)):
		}
	}
}

// board has the nodes of which something is being requested.
type board struct {
	slots chan struct{}
	group sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool
	errs []error
}

// advance begins the next request of each node, and returns how many nodes need none.
func (b *board) advance(ctx context.Context, idle []Node, step func(Node) next) (done int, err error) {
	for _, n := range idle {
		switch s := step(n); {
		case s.err != nil:
			return done, s.err
		case s.isDone:
			done++
		case s.request != nil:
			b.begin(ctx, n.UUID, s.request)
		}
	}
	return done, nil
}

// atWork returns the nodes of which something is being requested now: a list that begins now does not tell what came of it.
func (b *board) atWork() (map[string]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	busy := make(map[string]bool, len(b.busy))
	for uuid := range b.busy {
		busy[uuid] = true
	}
	return busy, errors.Join(b.errs...)
}

// begin makes the request as soon as one of the workers is free.
func (b *board) begin(ctx context.Context, uuid string, request func(context.Context) error) {
	b.mu.Lock()
	b.busy[uuid] = true
	b.mu.Unlock()
	b.group.Go(func() {
		b.slots <- struct{}{}
		defer func() { <-b.slots }()
		err := request(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, uuid)
		if err != nil && !isRefused(err) {
			b.errs = append(b.errs, fmt.Errorf("node %s: %w", uuid, err))
		}
	})
}

// isRefused reports whether Ironic says that the request may succeed later: the node is locked, or no conductor is free.
func isRefused(err error) bool {
	return gophercloud.ResponseCodeIs(err, http.StatusConflict) || gophercloud.ResponseCodeIs(err, http.StatusServiceUnavailable)
}
