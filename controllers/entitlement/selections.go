package entitlement

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
)

// selections keeps what selectors have found in each shared cluster until its devices or gates change. Without it: each look at each of 200 tenants tries its
// selectors on every device of the cluster, and the manager takes more than half of a processor while nothing happens.
type selections struct {
	mu       sync.Mutex
	clusters map[client.Client]*selection
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
