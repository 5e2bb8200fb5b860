package entitlement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Input is what the objects of one Entitlement follow from.
type Input struct {
	Entitlement *v1alpha1.Entitlement
	// Promises are those of the NodeTypes, by name.
	Promises map[string]Promise
	// GateKeys are the keys of the gates of all NodeTypes, sorted.
	GateKeys []string
	// Guarded are the resources that only an entitlement gives, sorted; a name that ends in * is a prefix.
	Guarded []string
	// Namespaces of the tenant that exist, sorted, and Terminating those of them that are being deleted. These take no new objects.
	Namespaces  []string
	Terminating map[string]bool
	// Made are the DeviceClasses of the Entitlement that are there, by name.
	Made map[string]MadeClass
}

// MadeClass is a DeviceClass that is there.
type MadeClass struct {
	Selector string
	// MadeFor is its annotation ingot.dev/made-for.
	MadeFor string
}

// madeFor identifies what a DeviceClass with a selector gives. A class that is changed, or a selector that somebody changes, has another one.
func madeFor(c v1alpha1.EntitledClass, selector string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.NodeTypeRef.Name, c.Kind, c.Profile, selector))
	return hex.EncodeToString(sum[:16])
}

// Class is a class of the Entitlement and what became of it.
type Class struct {
	v1alpha1.EntitledClass
	// DeviceClass is the name of its DeviceClass; empty: it has none.
	DeviceClass string
	// Selector of the DeviceClass.
	Selector string
	// Reason and Problem say why the class gives nothing; empty: it does.
	Reason, Problem string
	// IsDedicated: the nodes of its NodeType are not set up for several tenants.
	IsDedicated bool
	// IsKept: what its NodeType promises cannot be read now. Its DeviceClass, which was made for just this, stays as it is; a resource is what it says.
	IsKept bool
}

// isRefused reports whether nothing of the class may be asked for.
func (c Class) isRefused() bool { return c.Problem != "" && !c.IsKept }

// Plan is what the shared cluster must have.
type Plan struct {
	Classes []Class
	// Objects are typed objects of Kubernetes with their TypeMeta, in the order in which they are written: no DeviceClass appears before what fences it.
	Objects []any
}

type planner struct {
	in      Input
	classes []Class
}

// Make returns what the shared cluster must have for an Entitlement.
func Make(in Input) Plan {
	p := planner{in: in}
	for _, c := range in.Entitlement.Spec.Classes {
		class := Class{EntitledClass: c}
		var offered []offer
		offered, class.Reason, class.Problem = match(c, in.Promises)
		class.IsDedicated = in.Promises[c.NodeTypeRef.Name].IsDedicated
		if in.Promises[c.NodeTypeRef.Name].Problem != "" {
			made, found := in.Made[DeviceClassName(in.Entitlement, c)]
			class.IsKept = c.Kind == v1alpha1.DeviceResource || found && made.MadeFor == madeFor(c, made.Selector)
		}
		if !class.isRefused() && c.Kind != v1alpha1.DeviceResource {
			class.DeviceClass = DeviceClassName(in.Entitlement, c)
		}
		if class.Problem == "" && class.DeviceClass != "" {
			class.Selector = selector(offered)
		}
		p.classes = append(p.classes, class)
	}
	objects := p.policies()
	objects = append(objects, p.quotas()...)
	return Plan{Classes: p.classes, Objects: append(objects, p.deviceClassObjects()...)}
}

// DeviceClassName returns the name of the DeviceClass of a class.
func DeviceClassName(e *v1alpha1.Entitlement, c v1alpha1.EntitledClass) string {
	return e.Spec.Tenant + "-" + c.Name
}

// deviceClasses returns the names of the DeviceClasses.
func (p *planner) deviceClasses() []string {
	var out []string
	for _, c := range p.classes {
		if c.DeviceClass != "" {
			out = append(out, c.DeviceClass)
		}
	}
	return out
}

// resources returns the resources that containers may ask for.
func (p *planner) resources() []string {
	var out []string
	for _, c := range p.classes {
		switch {
		case c.isRefused():
		case c.Kind == v1alpha1.DeviceResource:
			out = append(out, c.Resource)
		default:
			out = append(out, resourcev1.ResourceDeviceClassPrefix+c.DeviceClass)
		}
	}
	return out
}

// ClaimPolicyName returns the name of the policy that judges the claims of a tenant.
func ClaimPolicyName(e *v1alpha1.Entitlement) string { return "ingot-claims-" + e.Spec.Tenant }

func (p *planner) claimPolicyName() string { return ClaimPolicyName(p.in.Entitlement) }
func (p *planner) podPolicyName() string   { return "ingot-pods-" + p.in.Entitlement.Spec.Tenant }
func (p *planner) quotaName() string       { return "ingot-" + p.in.Entitlement.Spec.Tenant }

// IsNameOf reports whether an object of an Entitlement may have the name. Without it: an Entitlement whose manifest was made from another one's, with its
// annotation, takes that one's objects for its own.
func IsNameOf(e *v1alpha1.Entitlement, kind, name string) bool {
	p := &planner{in: Input{Entitlement: e}}
	if kind == "DeviceClass" {
		return strings.HasPrefix(name, e.Spec.Tenant+"-")
	}
	return slices.Contains([]string{p.claimPolicyName(), p.podPolicyName(), p.quotaName()}, name)
}

// meta returns the metadata of an object of this Entitlement.
func (p *planner) meta(name string) metav1.ObjectMeta {
	e := p.in.Entitlement
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{
		v1alpha1.LabelEntitlement:                        string(e.ObjectsUID()),
		cmp.Or(e.Spec.TenantLabel, v1alpha1.LabelTenant): e.Spec.Tenant,
	}}
}

func (p *planner) quotas() []any {
	hard := p.limits()
	if len(hard) == 0 {
		return nil
	}
	var out []any
	for _, namespace := range p.in.Namespaces {
		if p.in.Terminating[namespace] {
			continue
		}
		meta := p.meta(p.quotaName())
		meta.Namespace = namespace
		out = append(out, &corev1.ResourceQuota{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}, ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: hard},
		})
	}
	return out
}

func (p *planner) limits() corev1.ResourceList {
	hard := corev1.ResourceList{}
	// Two classes may give the same resource, of nodes of two NodeTypes: a container cannot say which it means.
	add := func(name string, devices int32) {
		limit := hard[corev1.ResourceName(name)]
		limit.Add(*resource.NewQuantity(int64(devices), resource.DecimalSI))
		hard[corev1.ResourceName(name)] = limit
	}
	for _, c := range p.classes {
		switch {
		case c.isRefused():
		case c.Kind == v1alpha1.DeviceResource:
			add(corev1.DefaultResourceRequestsPrefix+c.Resource, c.Devices)
		default:
			add(c.DeviceClass+corev1.ResourceClaimsPerClass, c.Devices)
			add(corev1.ResourceImplicitExtendedClaimsPerClass+c.DeviceClass, c.Devices)
		}
	}
	return hard
}

func (p *planner) deviceClassObjects() []any {
	var out []any
	for _, c := range p.classes {
		if c.DeviceClass == "" || c.IsKept {
			continue
		}
		meta := p.meta(c.DeviceClass)
		meta.Annotations = map[string]string{v1alpha1.AnnotationMadeFor: madeFor(c.EntitledClass, c.Selector)}
		out = append(out, &resourcev1.DeviceClass{
			TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"}, ObjectMeta: meta,
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: c.Selector}}}},
		})
	}
	return out
}

// guardedAlways are the resources of GPUs and of DeviceClasses, which no NodeType needs to promise. Without them: a DeviceClass of a vendor's chart has the
// extended resource nvidia.com/gpu, and a pod gets a whole GPU by that name where every NodeType promises devices of a DRA driver.
var guardedAlways = []string{
	resourcev1.ResourceDeviceClassPrefix + "*", wellknown.NVIDIAGPU + "*", wellknown.NVIDIAMIGPrefix + "*", wellknown.AMDDomain + "*", wellknown.IntelGPUDomain + "*", wellknown.HabanaDomain + "*",
}

// Guarded returns the resources that only an entitlement gives: those of GPUs and of DeviceClasses, those that nodes are expected to have or NodeTypes declare,
// and those that any Entitlement gives. The last two hold also while a rendering cannot be read.
func Guarded(expectations []v1alpha1.NodeExpectation, nodeTypes []v1alpha1.NodeType, entitlements []v1alpha1.Entitlement) []string {
	out := slices.Clone(guardedAlways)
	add := func(name string) {
		isCovered := slices.ContainsFunc(guardedAlways, func(g string) bool { return strings.HasPrefix(name, strings.TrimSuffix(g, "*")) })
		if strings.Contains(name, "/") && !isCovered {
			out = append(out, name)
		}
	}
	for i := range nodeTypes {
		for name := range nodeTypes[i].Spec.Resources {
			add(string(name))
		}
	}
	for i := range entitlements {
		for _, c := range entitlements[i].Spec.Classes {
			add(c.Resource)
		}
	}
	for _, e := range expectations {
		for _, o := range offers(e) {
			add(o.resource)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// GateKeys returns the keys of the gates of NodeTypes, and the default one.
func GateKeys(nodeTypes []v1alpha1.NodeType) []string {
	keys := []string{v1alpha1.DefaultGateTaintKey}
	for i := range nodeTypes {
		if key := nodeTypes[i].Spec.Gate.TaintKey; key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
