package entitlement

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
)

// selections keeps what selectors have found in each shared cluster until its devices or gates change. Without it: each look at each of 200 tenants tries its
// selectors on every device of the cluster, and the manager takes more than half of a processor while nothing happens.
type selections struct {
	mu       sync.Mutex
	clusters map[client.Client]*selection
	told     map[client.Client]told
}

// told is the state of a cluster that its Entitlements were told of last, and when.
type told struct {
	state uint64
	at    time.Time
}

// tellInterval is how often the Entitlements of a cluster are looked at because of its devices at most. Without it: while a hall is rolled, each of 200 tenants is
// looked at all the time.
const tellInterval = 5 * time.Second

// isNews reports whether the other Entitlements of a cluster must be told that its devices are in another state, and counts them as told. Without that: rows of
// one NodeType say different things of it until the last one has had its steady look.
func (s *selections) isNews(cluster client.Client, state uint64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, isKnown := s.told[cluster]
	if isKnown && (last.state == state || now.Sub(last.at) < tellInterval) {
		return false
	}
	// Another kubeconfig makes another client: the clients of before are dropped with all.
	if s.told == nil || len(s.told) >= keptClusters && !isKnown {
		s.told = map[client.Client]told{}
	}
	s.told[cluster] = told{state, now}
	return isKnown
}

// keptClusters is for how many clusters it is kept.
const keptClusters = 100

// selection is what was found among the devices of one state of a cluster.
type selection struct {
	state uint64
	found map[string]tried
}

// tried is what a selector has found, or why it cannot be used.
type tried struct {
	found entitlement.Found
	err   error
}

// find returns what a selector finds among the devices that are published.
func (s *selections) find(cluster client.Client, state uint64, selector string, published []resourcev1.ResourceSlice, gated map[string]bool) (entitlement.Found, error) {
	if known, isKnown := s.known(cluster, state, selector); isKnown {
		return known.found, known.err
	}
	found, err := entitlement.Find(selector, published, func(node string) bool { return gated[node] })
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[cluster]; c != nil && c.state == state {
		c.found[selector] = tried{found, err}
	}
	return found, err
}

// known returns what was found before, and forgets what was found in another state.
func (s *selections) known(cluster client.Client, state uint64, selector string) (tried, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Another kubeconfig makes another client: the clients of before are dropped with all.
	if s.clusters == nil || len(s.clusters) >= keptClusters && s.clusters[cluster] == nil {
		s.clusters = map[client.Client]*selection{}
	}
	if c := s.clusters[cluster]; c == nil || c.state != state {
		s.clusters[cluster] = &selection{state: state, found: map[string]tried{}}
	}
	t, isKnown := s.clusters[cluster].found[selector]
	return t, isKnown
}

// stateOf returns a number that another state of the devices and gates has hardly ever.
func stateOf(published []resourcev1.ResourceSlice, gated map[string]bool) uint64 {
	sum := fnv.New64a()
	versions := make([]string, 0, len(published))
	for i := range published {
		versions = append(versions, string(published[i].UID)+" "+published[i].ResourceVersion)
	}
	slices.Sort(versions)
	fmt.Fprint(sum, versions)
	for _, node := range slices.Sorted(maps.Keys(gated)) {
		if gated[node] {
			fmt.Fprint(sum, " ", node)
		}
	}
	return sum.Sum64()
}
