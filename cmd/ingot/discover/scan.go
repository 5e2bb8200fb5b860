package discover

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/identity"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish/serviceroot"
)

// service is what answers at an address.
type service struct {
	at     netip.AddrPort
	answer serviceroot.Answer
	// also are further addresses of the same BMC.
	also []netip.AddrPort
	// isRead is true where the login worked and inventory holds what the BMC reports; problem says why not, where a login was due.
	isRead    bool
	problem   string
	inventory hardware.Inventory
}

// scanner asks many addresses at once.
type scanner struct {
	parallel int
	timeout  time.Duration
	progress *progress
}

// scan looks at every endpoint and returns what answered, in order, and how many endpoints it looked at. When the context ends it returns what
// was found so far.
func (s scanner) scan(ctx context.Context, all []netip.AddrPort) (found []service, looked int) {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
		queue   = make(chan netip.AddrPort)
	)
	for range min(s.parallel, len(all)) {
		workers.Go(func() {
			for at := range queue {
				limited, cancel := context.WithTimeout(ctx, s.timeout)
				answer := serviceroot.Look(limited, at.String())
				cancel()
				isCut := ctx.Err() != nil && answer.Kind != serviceroot.Redfish
				mu.Lock()
				if !isCut {
					looked++
					if answer.Kind != serviceroot.Nothing {
						found = append(found, service{at: at, answer: answer})
					}
					s.progress.add(answer.Kind == serviceroot.Redfish)
				}
				mu.Unlock()
			}
		})
	}
feeding:
	for _, at := range all {
		select {
		case queue <- at:
		case <-ctx.Done():
			break feeding
		}
	}
	close(queue)
	workers.Wait()
	slices.SortFunc(found, func(a, b service) int { return a.at.Compare(b.at) })
	return found, looked
}

// bmcs returns the Redfish services, each BMC once: services with the same UUID are one BMC with several addresses. A UUID that identifies
// nothing makes no two services one. Without it: the BMCs of a vendor that ships one UUID with all of them would be one host.
func bmcs(found []service) []service {
	var out []service
	first := map[string]int{}
	for _, s := range found {
		if s.answer.Kind != serviceroot.Redfish {
			continue
		}
		if uuid := identity.SystemUUID(s.answer.Root.UUID); uuid != "" {
			if i, isKnown := first[uuid]; isKnown {
				out[i].also = append(out[i].also, s.at)
				continue
			}
			first[uuid] = len(out)
		}
		out = append(out, s)
	}
	return out
}
