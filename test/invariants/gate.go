package invariants

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// gateHistory records the resource versions at which Nodes had the gate taint and pods were bound.
type gateHistory struct {
	mu     sync.Mutex
	taint  string
	nodes  map[types.UID]*nodeHistory
	byName map[string][]types.UID
	pods   map[types.UID]binding
}

type nodeHistory struct {
	name string
	// late means that its first versions were missed.
	late   bool
	states []gateState
}

type gateState struct {
	version uint64
	gated   bool
}

type binding struct {
	pod, node string
	version   uint64
}

func newGateHistory(taint string) *gateHistory {
	return &gateHistory{taint: taint, nodes: map[types.UID]*nodeHistory{}, byName: map[string][]types.UID{}, pods: map[types.UID]binding{}}
}

// recordNode records a version of a Node. late means that earlier versions may have been missed.
func (g *gateHistory) recordNode(n *corev1.Node, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.nodes[n.UID]
	if h == nil {
		h = &nodeHistory{name: n.Name, late: late}
		g.nodes[n.UID] = h
		g.byName[n.Name] = append(g.byName[n.Name], n.UID)
	}
	gated := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == g.taint })
	h.states = append(h.states, gateState{version(n.ResourceVersion), gated})
}

// recordPod records the first version of a pod that has a Node. late means that its binding may be older than this version; such a pod is not
// checked.
func (g *gateHistory) recordPod(p *corev1.Pod, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.pods[p.UID]; known || p.Spec.NodeName == "" || g.isTolerating(p) {
		return
	}
	b := binding{pod: p.Namespace + "/" + p.Name, node: p.Spec.NodeName, version: version(p.ResourceVersion)}
	if late {
		b.node = ""
	}
	g.pods[p.UID] = b
}

func (g *gateHistory) isTolerating(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == g.taint || t.Key == "" && t.Operator == corev1.TolerationOpExists
	})
}

// violations returns the violations of invariant 2.
func (g *gateHistory) violations() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, h := range g.nodes {
		if first := slices.MinFunc(h.states, byVersion); !first.gated && !h.late {
			out = append(out, fmt.Sprintf("node %s was without the gate taint %s when it was first seen", h.name, g.taint))
		}
	}
	for _, b := range g.pods {
		if g.isGatedAt(b.node, b.version) {
			out = append(out, fmt.Sprintf("pod %s does not tolerate %s and was bound to node %s while the gate was on it", b.pod, g.taint, b.node))
		}
	}
	slices.Sort(out)
	return out
}

// isGatedAt reports whether the latest Node with the name had the gate taint at the version.
func (g *gateHistory) isGatedAt(name string, at uint64) bool {
	var newest *gateState
	for _, uid := range g.byName[name] {
		for i, s := range g.nodes[uid].states {
			if s.version < at && (newest == nil || s.version > newest.version) {
				newest = &g.nodes[uid].states[i]
			}
		}
	}
	return newest != nil && newest.gated
}

func byVersion(a, b gateState) int {
	if a.version < b.version {
		return -1
	}
	return 1
}

// version parses a resource version of etcd, which is a number. Anything else counts as the oldest.
func version(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
