package validate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/join"
)

// checkJoins checks whether the nodes of each NodePool and Machine can join their TenantCluster with the settings of kubelet that their NodeType has.
func (v *validator) checkJoins() {
	keys := slices.SortedFunc(maps.Keys(v.all), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, k := range keys {
		if k.kind != "NodePool" && k.kind != "Machine" {
			continue
		}
		m := v.all[k]
		nodeType := findByName(v.nodeTypes, m.StringField(toNodeType.field...))
		tenant := slices.IndexFunc(v.tenants, func(t located[v1alpha1.TenantCluster]) bool {
			return t.Namespace() == k.namespace && t.Name() == m.StringField(toTenant.field...)
		})
		if nodeType == nil || tenant < 0 {
			continue
		}
		if problem := join.SettingsProblem(v.tenants[tenant].object.Spec.Join, nodeType.object.Spec.KubeletMembers()); problem != "" {
			v.add(m.NewFinding(joinPath(toTenant.field), "join/kubelet", "%s", problem))
		}
	}
}
