package entitlement

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
)

// plans keeps the plans of NodeTypeRenderings, which are immutable. Without it: each look at each of 200 tenants decodes those of all NodeTypes.
type plans struct {
	mu    sync.Mutex
	plans map[types.UID]v1alpha1.NodePlan
}

// of returns the plan of a rendering. Nobody may change it.
func (p *plans) of(rendered *v1alpha1.NodeTypeRendering) (v1alpha1.NodePlan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, isKnown := p.plans[rendered.UID]; isKnown {
		return known, nil
	}
	plan, err := rendering.Plan(rendered)
	if err != nil {
		return plan, err
	}
	if p.plans == nil {
		p.plans = map[types.UID]v1alpha1.NodePlan{}
	}
	p.plans[rendered.UID] = plan
	return plan, nil
}

// keepOnly drops the plans of renderings that are gone.
func (p *plans) keepOnly(existing []v1alpha1.NodeTypeRendering) {
	isThere := map[types.UID]bool{}
	for i := range existing {
		isThere[existing[i].UID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.plans, func(uid types.UID, _ v1alpha1.NodePlan) bool { return !isThere[uid] })
}
