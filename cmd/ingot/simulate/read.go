package simulate

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// objects are the NodeTypes and NodePools of the files.
type objects struct {
	nodeTypes []v1alpha1.NodeType
	pools     []v1alpha1.NodePool
}

func read(files []string, stdin io.Reader) (objects, error) {
	var all objects
	manifests, err := offline.Read(files, stdin)
	if err != nil {
		return objects{}, fmt.Errorf("read the NodeType: %w", err)
	}
	for _, m := range manifests {
		if err := all.add(m); err != nil {
			return objects{}, fmt.Errorf("read %s: %w", m.File, err)
		}
	}
	return all, nil
}

// add adds NodeTypes and NodePools. Objects of other kinds have no effect on a rollout.
func (o *objects) add(m offline.Manifest) error {
	if m.APIVersion() != v1alpha1.GroupVersion.String() {
		return nil
	}
	switch m.Kind() {
	case "NodeType":
		o.nodeTypes = append(o.nodeTypes, v1alpha1.NodeType{})
		return m.Decode(&o.nodeTypes[len(o.nodeTypes)-1])
	case "NodePool":
		o.pools = append(o.pools, v1alpha1.NodePool{})
		return m.Decode(&o.pools[len(o.pools)-1])
	}
	return nil
}

// findNodeType returns the NodeType of a name or, when the name is empty, the only one.
func (o objects) findNodeType(opts options) (*v1alpha1.NodeType, error) {
	var names []string
	for i := range o.nodeTypes {
		n := &o.nodeTypes[i]
		if n.Name == opts.nodeType || opts.nodeType == "" && len(o.nodeTypes) == 1 {
			return n, validate(n)
		}
		names = append(names, n.Name)
	}
	switch from := strings.Join(opts.files, ", "); {
	case len(names) == 0:
		return nil, fmt.Errorf("expected a NodeType of %s, seen none in %s", v1alpha1.GroupVersion, from)
	case opts.nodeType == "":
		return nil, fmt.Errorf("expected one NodeType, seen %s in %s: say which with --nodetype", strings.Join(names, ", "), from)
	default:
		return nil, fmt.Errorf("expected NodeType %s, seen %s in %s", opts.nodeType, strings.Join(names, ", "), from)
	}
}

// validate refuses what the API server would refuse, because no API server reads these files.
func validate(n *v1alpha1.NodeType) error {
	p := n.Spec.Rollout
	if p == nil {
		return nil
	}
	switch where := "NodeType " + n.Name + ": spec.rollout."; {
	case !isValidAmount(p.MaxUnavailable):
		return fmt.Errorf("%smaxUnavailable: expected a number of at least 1, or a percentage from 1%% to 100%%, seen %s", where, p.MaxUnavailable)
	case p.Canary != nil && p.Canary.Machines < 1:
		return fmt.Errorf("%scanary.machines: expected at least 1, seen %d", where, p.Canary.Machines)
	case p.FailureBudget != nil && *p.FailureBudget < 0:
		return fmt.Errorf("%sfailureBudget: expected 0 or more, seen %d", where, *p.FailureBudget)
	}
	return nil
}

// isValidAmount says whether the value is a number of at least 1, a percentage from 1% to 100%, or nil.
func isValidAmount(v *intstr.IntOrString) bool {
	if v == nil {
		return true
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, false)
	return err == nil && n >= 1 && (v.Type == intstr.Int || n <= 100)
}
