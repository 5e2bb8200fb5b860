package tenant

import (
	"context"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

const (
	rbacGroup = "rbac.authorization.k8s.io"
	rbacAPI   = rbacGroup + "/v1"
	// resourceGroup has what DRA drivers publish and pods claim.
	resourceGroup = "resource.k8s.io"
	// tokenNamespace is where the API server looks for bootstrap tokens.
	tokenNamespace = "kube-system"
	// roleName of the roles that the tenant grants.
	roleName = "ingot"
)

// right is something that the manager does in a tenant's cluster.
type right struct {
	group, resource string
	verbs           []string
	// namespace of it; empty: the whole cluster.
	namespace string
	why       string
	// name of the only object; empty: all.
	name string
	// isOptional is true where nodes join without it.
	isOptional bool
}

// rights are those that the manager needs in every tenant's cluster.
var rights = []right{
	{"", "nodes", []string{"get", "list", "watch", "patch", "delete"}, "", "judge, gate, label, cordon and remove nodes", "", false},
	{"", "pods", []string{"list"}, "", "drain a node", "", false},
	{"policy", "poddisruptionbudgets", []string{"list"}, "", "name the budgets that keep pods on a node", "", false},
	{"", "pods/eviction", []string{"create"}, "", "drain a node", "", false},
	{"apps", "daemonsets", []string{"get", "list"}, "", "drain a node, and name DaemonSets that the gate keeps off", "", false},
	{resourceGroup, "resourceslices", []string{"get", "list", "watch"}, "", "judge the devices of a node", "", false},
	{resourceGroup, "deviceclasses", []string{"get", "list"}, "", "judge whether a node's devices can be asked for", "", false},
	// A Role in a namespace gives the right to get that Namespace.
	{"", "namespaces", []string{"get"}, tokenNamespace, "tell the cluster from another one, by the uid of its Namespace kube-system", "", false},
	{"", "secrets", []string{"create", "list", "patch", "delete"}, tokenNamespace, "give a joining node its bootstrap token, and take it back", "", false},
	{"", "services", []string{"get"}, tokenNamespace, "tell nodes the cluster's DNS (or set spec.clusterDNS of the TenantCluster)", "kube-dns", true},
	{"", "configmaps", []string{"get"}, tokenNamespace, "tell nodes the DNS of a cluster with its own domain or a node-local cache", "kubelet-config", true},
	{"", "events", []string{"create"}, metav1.NamespaceDefault, "say on a Node why its gate is there", "", true},
}

// servingRights are those that it needs besides where it approves the serving certificates of kubelets.
var servingRights = []right{
	{"certificates.k8s.io", "certificatesigningrequests", []string{"get", "list", "watch"}, "", "see the requests for serving certificates of kubelets", "", false},
	{"certificates.k8s.io", "certificatesigningrequests/approval", []string{"update"}, "", "approve those that name what Ingot knows of their Machine", "", false},
	{"certificates.k8s.io", "signers", []string{"approve"}, "", "approve requests to this signer and to no other", certificatesv1.KubeletServingSignerName, false},
}

// entitlementRights are those that it needs besides in a cluster that tenants share, where it keeps what enforces their Entitlements.
var entitlementRights = []right{
	{"", "namespaces", []string{"list"}, "", "find the namespaces of a tenant", "", false},
	{"", "resourcequotas", ownedVerbs, "", "limit the devices of each namespace of a tenant", "", false},
	{resourceGroup, "deviceclasses", ownedVerbs, "", "make the classes that a tenant may ask for", "", false},
	{resourceGroup, "resourceclaims", []string{"list", "watch", "create"}, "", "count the devices that a tenant has, and try, as a dry run, a claim that must be refused", "", false},
	{"", "events", []string{"list"}, "", "say why the claim of a waiting pod is not made", "", true},
	{"admissionregistration.k8s.io", "validatingadmissionpolicies", ownedVerbs, "", "refuse what a tenant is not entitled to", "", false},
	{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", ownedVerbs, "", "refuse it in the namespaces of the tenant", "", false},
}

// ownedVerbs are what the manager does with objects that it keeps by server-side apply.
var ownedVerbs = []string{"get", "list", "create", "patch", "delete"}

// probeRights are those that it needs besides where a NodeType has validation.probe. With resource.k8s.io are those for devices of a DRA driver.
var probeRights = []right{
	{"", "pods", []string{"get", "create", "delete"}, metav1.NamespaceDefault, "use a node's devices once before it is admitted (validation.probe)", "", false},
	{resourceGroup, "resourceclaims", []string{"create", "delete"}, metav1.NamespaceDefault, "claim a node's devices for that (validation.probe)", "", false},
}

// neededRights returns the rights that the manager needs in this tenant's cluster.
func (t *tenant) neededRights() []right {
	needed := slices.Clone(rights)
	if t.servingCertificates {
		needed = append(needed, servingRights...)
	}
	if t.entitlements {
		needed = append(needed, entitlementRights...)
	}
	for _, r := range probeRights {
		if t.requirements.hasProbe() && (r.group != resourceGroup || len(t.requirements.nodeTypesWithDRA()) > 0) {
			needed = append(needed, r)
		}
	}
	return needed
}

// checkRights checks each right of the kubeconfig's user. When one is missing, the grants have all of them.
func (t *tenant) checkRights(ctx context.Context) {
	const topic = "rights"
	missing := false
	for _, r := range t.neededRights() {
		var denied []string
		for _, verb := range r.verbs {
			allowed, err := t.isAllowed(ctx, r, verb)
			if err != nil {
				t.add(levelNote, topic, "cannot be asked for: %v", err)
				return
			}
			if !allowed {
				denied = append(denied, verb)
			}
		}
		if len(denied) > 0 {
			missing = true
			level := levelMend
			if r.isOptional {
				level = levelNote
			}
			t.add(level, topic, "the user may not %s %s, to %s", strings.Join(denied, ", "), r.text(), r.why)
		}
	}
	switch {
	case !missing:
		t.add(levelOK, topic, "the user may do all that Ingot does in a tenant's cluster")
	case t.user == "":
		t.add(levelNote, topic, "to be granted to the kubeconfig's user, whose name is not known")
	default:
		t.add(levelNote, topic, "ingot tenant add --tenant-side prints the roles for %s, to be applied in the tenant's cluster", t.user)
		t.grants = append(t.grants, roleObjects(t.neededRights(), t.userSubject())...)
	}
}

func (r right) text() string {
	name := r.resource
	if r.group != "" {
		name += "." + r.group
	}
	if r.name != "" {
		name += "/" + r.name
	}
	if r.namespace != "" {
		name += " in namespace " + r.namespace
	}
	return name
}

func (t *tenant) isAllowed(ctx context.Context, r right, verb string) (bool, error) {
	resource, sub, _ := strings.Cut(r.resource, "/")
	review, err := t.api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: r.group, Resource: resource, Subresource: sub, Verb: verb, Namespace: r.namespace, Name: r.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// roleObjects returns a ClusterRole with rights, a Role for each namespace that some are for, and their bindings.
func roleObjects(granted []right, subject map[string]any) []cli.Object {
	rules := map[string][]any{}
	for _, r := range granted {
		rule := map[string]any{"apiGroups": []string{r.group}, "resources": []string{r.resource}, "verbs": r.verbs}
		if r.name != "" {
			rule["resourceNames"] = []string{r.name}
		}
		rules[r.namespace] = append(rules[r.namespace], rule)
	}
	var out []cli.Object
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		kind, metadata := "ClusterRole", map[string]any{"name": roleName}
		if namespace != "" {
			kind, metadata = "Role", map[string]any{"name": roleName, "namespace": namespace}
		}
		out = append(out,
			cli.Object{"apiVersion": rbacAPI, "kind": kind, "metadata": metadata, "rules": rules[namespace]},
			cli.Object{"apiVersion": rbacAPI, "kind": kind + "Binding", "metadata": metadata,
				"roleRef": map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": roleName}, "subjects": []any{subject}})
	}
	return slices.Clip(out)
}
