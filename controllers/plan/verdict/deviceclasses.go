package verdict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// PrefixDeviceClass begins the names of checks for the DeviceClasses by which pods claim devices: deviceclass/<name>.
const PrefixDeviceClass = "deviceclass/"

// The limits of expressions, which the tenant writes. The cost is in the unit of Kubernetes: a million takes about 0.1 seconds.
const (
	maxExpression = resourcev1.CELSelectorExpressionMaxLength
	maxSelectors  = resourcev1.DeviceSelectorsMaxSize
	maxNodeCost   = 5 * resourcev1.CELSelectorExpressionMaxCost
)

// DeviceClass is the result of reading a DeviceClass of the tenant.
type DeviceClass struct {
	// Missing is true if it does not exist.
	Missing bool
	// ReadError says why it could not be read; empty: it was read.
	ReadError string
	// Selectors are its compiled selectors.
	Selectors Selectors
}

// Selectors are the compiled selectors of a DeviceClass. They are immutable and safe for concurrent use.
type Selectors struct {
	programs []cel.CompilationResult
	// problem says why they cannot be evaluated; empty: they can.
	problem string
}

// Compile compiles the selectors of a DeviceClass with the library that the scheduler uses. If that fails, the check of the class
// says why.
func Compile(class *resourcev1.DeviceClass) Selectors {
	var out Selectors
	if len(class.Spec.Selectors) > maxSelectors {
		return Selectors{problem: fmt.Sprintf("it has more than %d selectors", maxSelectors)}
	}
	// All features are enabled: the API server compiles stored expressions so, and the tenant's feature gates are not known.
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	for i, s := range class.Spec.Selectors {
		if s.CEL == nil {
			return Selectors{problem: fmt.Sprintf("selector %d has no CEL expression", i)}
		}
		if len(s.CEL.Expression) > maxExpression {
			return Selectors{problem: fmt.Sprintf("selector %d has more than %d bytes", i, maxExpression)}
		}
		p := compiler.CompileCELExpression(s.CEL.Expression, cel.Options{DisableCostEstimation: true})
		if p.Error != nil {
			return Selectors{problem: fmt.Sprintf("selector %d: %s", i, p.Error.Detail)}
		}
		out.programs = append(out.programs, p)
	}
	return out
}

// count returns how many devices all selectors select. It is an error if an expression fails on one device, because that fails all
// claims in the scheduler too, or if the evaluations cost more than maxCost together.
func (s Selectors) count(devices []device, maxCost uint64) (int, error) {
	if s.problem != "" {
		return 0, errors.New(s.problem)
	}
	left := maxCost
	n := 0
	for _, d := range devices {
		ok, cost, err := s.matches(d)
		if err != nil {
			return 0, fmt.Errorf("on device %s: %w", input.Line(d.Name, maxName), err)
		}
		if cost > left {
			return 0, fmt.Errorf("its selectors cost too much to evaluate on %d devices", len(devices))
		}
		left -= cost
		if ok {
			n++
		}
	}
	return n, nil
}

func (s Selectors) matches(d device) (ok bool, cost uint64, err error) {
	input := cel.Device{Driver: d.driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity}
	for _, p := range s.programs {
		// The cost limit ends it; there is nothing to cancel.
		matches, details, err := p.DeviceMatches(context.Background(), input)
		switch {
		case err != nil && details == nil:
			// Nothing was evaluated. Which of several bad attributes the library names is chance.
			return false, cost, errors.New("an attribute has no value, or is no semantic version although it says so")
		case err != nil:
			return false, cost, err
		}
		if actual := details.ActualCost(); actual != nil && *actual < math.MaxInt64 {
			cost += *actual
		}
		if !matches {
			return false, cost, nil
		}
	}
	return true, cost, nil
}

// NeedsDeviceClasses reports whether Judge needs the DeviceClasses. They are compared until the node is admitted, and the result
// is kept from then on. If they were compared always: an administrator of the tenant mistypes a selector, and every node of
// the cluster is closed to new pods at once, although no node has changed.
func NeedsDeviceClasses(in Input) bool {
	if !in.SlicesServed {
		return false
	}
	for _, e := range in.Expectation.Slices {
		for _, c := range e.DeviceClasses {
			if admittedCheck(in, c.Name) == nil {
				return true
			}
		}
	}
	return false
}

// admittedCheck returns the check of a class in the previous verdict, if that admitted this boot of this node; nil: none.
func admittedCheck(in Input, class string) *v1alpha1.Check {
	p := in.Previous
	if p == nil || !p.Admitted || !isSameSubject(p, newVerdict(in)) {
		return nil
	}
	for i := range p.Checks {
		if p.Checks[i].Name == PrefixDeviceClass+class && p.Checks[i].Result == v1alpha1.CheckPass {
			return &p.Checks[i]
		}
	}
	return nil
}

// checkDeviceClasses compares how many devices the classes select with the expectation.
func checkDeviceClasses(in Input) []v1alpha1.Check {
	if !in.SlicesServed {
		return nil
	}
	all := in.pools.allUsableDevices(in.Node.Name)
	var out []v1alpha1.Check
	for _, e := range in.Expectation.Slices {
		absent := absentForms(in, e)
		for _, c := range e.DeviceClasses {
			read, ok := in.DeviceClasses[c.Name]
			known := admittedCheck(in, c.Name)
			switch {
			case ok:
				out = append(out, deviceClassCheck(c, read, all, absent))
			case known != nil:
				out = append(out, *known)
			default:
				out = append(out, deviceClassCheck(c, DeviceClass{ReadError: "it has not been read"}, nil, 0))
			}
		}
	}
	return out
}

// deviceClassCheck compares how many devices the class selects, of which so many may be absent.
func deviceClassCheck(expected v1alpha1.ExpectedDeviceClass, read DeviceClass, devices []device, absent int) v1alpha1.Check {
	c := v1alpha1.Check{Name: PrefixDeviceClass + expected.Name, Result: v1alpha1.CheckWait, Expected: fmt.Sprintf("selects %d devices of the node", expected.Count)}
	switch {
	case read.Missing:
		c.Observed = "it does not exist"
		c.Hint = "pods claim the devices by this DeviceClass, which the tenant must have: the DRA driver's Helm chart creates it; kubectl get deviceclasses"
		return c
	case read.ReadError != "":
		c.Observed = input.Line(read.ReadError, maxText)
		c.Hint = "the tenant's API did not give the DeviceClass; the user of its kubeconfig must be allowed to get deviceclasses.resource.k8s.io"
		return c
	}
	n, err := read.Selectors.count(devices, maxNodeCost)
	if err != nil {
		c.Result, c.Observed = v1alpha1.CheckFail, input.Line(err.Error(), maxText)
		c.Hint = "the selectors of the tenant's DeviceClass cannot be evaluated: kubectl get deviceclass " + expected.Name + " -o yaml"
		return c
	}
	c.Observed = strconv.Itoa(n)
	switch {
	case n <= expected.Count && n+absent >= expected.Count:
		c.Result = v1alpha1.CheckPass
	case n > expected.Count:
		c.Result = v1alpha1.CheckFail
	}
	if c.Result != v1alpha1.CheckPass {
		c.Hint = "compare the selectors of the tenant's DeviceClass with the devices: kubectl get deviceclass " + expected.Name + " -o yaml; kubectl get resourceslices -o yaml"
	}
	return c
}
