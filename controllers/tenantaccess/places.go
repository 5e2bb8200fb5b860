package tenantaccess

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// places decides which tenant gets a worker. It has no lock and no clock. Tenants are named by their namespaces.
//
// A tenant always gets a quarter of the workers. It borrows more while a quarter of all remains free for others, so that no other waits
// until something borrowed is given back. As soon as less than that is free, or another tenant that has fewer waits, a borrowed place is
// taken back.
type places struct {
	workers int
	// held has how many places each tenant has: those of its rounds, and those that are set aside for requests that were called.
	held map[string]int
	// leaving has how many of them are being taken back.
	leaving map[string]int
	// waiting has the requests that wait, in the order in which they came, each once.
	waiting map[string][]reconcile.Request
}

func newPlaces(workers int) *places {
	return &places{workers: workers, held: map[string]int{}, leaving: map[string]int{}, waiting: map[string][]reconcile.Request{}}
}

// quarter returns how many places are always a tenant's, and how many must remain free when one borrows.
func (p *places) quarter() int { return max(p.workers/tenantShare, 1) }

// free returns how many workers no tenant has, when those that are being taken back are.
func (p *places) free() int {
	free := p.workers
	for tenant, held := range p.held {
		free -= held - p.leaving[tenant]
	}
	return free
}

// hasRoom tells whether a tenant may have one more place. canBorrow is asked only if that decides.
func (p *places) hasRoom(tenant string, canBorrow func(tenant string) bool) bool {
	return p.held[tenant] < p.quarter() || p.free() > p.quarter() && canBorrow(tenant)
}

// enqueue lets a request wait.
func (p *places) enqueue(tenant string, request reconcile.Request) {
	if !slices.Contains(p.waiting[tenant], request) {
		p.waiting[tenant] = append(p.waiting[tenant], request)
	}
}

// next sets a place aside for the request that waited longest, of the tenant that has the fewest places of those for which there is room.
func (p *places) next(canBorrow func(tenant string) bool) (tenant string, request reconcile.Request, found bool) {
	for other := range p.waiting {
		isFewer := !found || p.held[other] < p.held[tenant] || p.held[other] == p.held[tenant] && other < tenant
		if isFewer && p.hasRoom(other, canBorrow) {
			tenant, found = other, true
		}
	}
	if !found {
		return "", reconcile.Request{}, false
	}
	queue := p.waiting[tenant]
	request = queue[0]
	if p.waiting[tenant] = queue[1:]; len(queue) == 1 {
		delete(p.waiting, tenant)
	}
	p.held[tenant]++
	return tenant, request, true
}

// surplus returns the tenant from which a borrowed place must be taken back; empty: none. claimant is who has just got a place, or waits
// for one.
func (p *places) surplus(claimant string, isWaiting bool) string {
	most := ""
	for tenant, held := range p.held {
		if staying := held - p.leaving[tenant]; tenant != claimant && staying > p.quarter() && (most == "" || staying > p.held[most]-p.leaving[most]) {
			most = tenant
		}
	}
	isUnequal := isWaiting && p.held[most]-p.leaving[most] > p.held[claimant]+1
	if most != "" && (p.free() < p.quarter() || isUnequal) {
		return most
	}
	return ""
}

// leave gives a place back.
func (p *places) leave(tenant string, wasTakenBack bool) {
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	if wasTakenBack {
		p.leaving[tenant]--
	}
	if p.leaving[tenant] == 0 {
		delete(p.leaving, tenant)
	}
}
