package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/machine/eviction"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

const (
	tokenNamespace = "kube-system"
	tokenPrefix    = "bootstrap-token-"
	keyExpiration  = "expiration"
	keyTokenID     = "token-id"
	keyTokenSecret = "token-secret"
)

func tenantTrouble(err error) (reason, message string) {
	var trouble *tenantaccess.Error
	if errors.As(err, &trouble) {
		return trouble.Reason, trouble.Err.Error()
	}
	return v1alpha1.ReasonTenantUnreachable, err.Error()
}

// lost takes back that the tenant can be used: a call of this reconcile says otherwise.
func (v *view) lost(err error) {
	v.access = nil
	v.facts.Tenant.Reachable = false
	v.facts.Tenant.Reason, v.facts.Tenant.Message = v1alpha1.ReasonTenantUnreachable, err.Error()
}

// observeToken looks for the Machine's bootstrap token while there may be one. The tenant's API server itself is asked: a
// token that was just made must be seen, or there would be two.
func (r *Reconciler) observeToken(ctx context.Context, v *view) error {
	scrubbed := v.facts.Secret.Found && v.facts.Secret.TokenID == "" && v.facts.Secret.Attempt == v.machine.Status.Attempt
	if v.access == nil || v.machine.Status.Attempt == 0 || scrubbed {
		return nil
	}
	if token, enough := r.tokens.Enough(v.machine, v.facts.Secret, r.Timeouts.TokenRenew, r.Clock()); enough {
		v.facts.Token = &token
		return nil
	}
	return r.readToken(ctx, v)
}

// readToken asks the tenant's API server.
func (r *Reconciler) readToken(ctx context.Context, v *view) error {
	tokens, err := v.access.Clientset.CoreV1().Secrets(tokenNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: v1alpha1.LabelMachine + "=" + string(v.machine.UID),
	})
	if err != nil {
		v.lost(fmt.Errorf("list bootstrap tokens: %w", err))
		return nil
	}
	for i := range tokens.Items {
		t := &tokens.Items[i]
		if v.token == nil || string(t.Data[keyTokenID]) == v.facts.Secret.TokenID {
			v.token = t
		}
	}
	if v.token == nil {
		return nil
	}
	// A token whose end cannot be read counts as one that has ended: it is renewed, or deleted.
	expires, err := time.Parse(time.RFC3339, string(v.token.Data[keyExpiration]))
	if err != nil {
		expires = time.Time{}
	}
	v.facts.Token = &lifecycle.Token{ID: string(v.token.Data[keyTokenID]), Expires: expires}
	r.tokens.Saw(v.machine.UID, *v.facts.Token)
	return nil
}

// observeNode reads the Node; during a release from the tenant's API server itself, because "gone" is acted upon.
func (r *Reconciler) observeNode(ctx context.Context, v *view) error {
	if v.access == nil || !alive(v.machine.Status.Phase) {
		return nil
	}
	leaving := v.machine.Status.Phase == v1alpha1.MachineReleasing || v.machine.Status.Phase == v1alpha1.MachineDraining
	reader := v.access.Cache
	if leaving {
		reader = v.access.Client
	}
	node, err := read(ctx, reader, named(v.machine.Name), &corev1.Node{})
	if err != nil {
		v.lost(err)
		return nil
	}
	if node == nil {
		return nil
	}
	v.node = node
	v.facts.Node = lifecycle.Node{
		Found: true, UID: node.UID, ProviderID: node.Spec.ProviderID, BootID: node.Status.NodeInfo.BootID,
		Unschedulable: node.Spec.Unschedulable, Furnished: v.furnishing(node).empty(),
	}
	_, v.facts.Node.Cordoned = node.Annotations[v1alpha1.AnnotationCordoned]
	if leaving && node.Spec.Unschedulable {
		return r.observePods(ctx, v)
	}
	return nil
}

// observePods looks for the pods to be evicted and, when a roll's eviction has had its time, for the budgets that keep them.
func (r *Reconciler) observePods(ctx context.Context, v *view) error {
	pods, err := eviction.Pods(ctx, v.access.Clientset, v.node.Name)
	if err != nil {
		v.lost(err)
		return nil
	}
	v.pods = pods
	for i := range v.pods {
		v.facts.Node.Pods = append(v.facts.Node.Pods, client.ObjectKeyFromObject(&v.pods[i]).String())
	}
	if v.machine.Status.Phase == v1alpha1.MachineDraining && v.facts.IsDrainOver() {
		v.facts.Node.Budgets = eviction.Budgets(ctx, v.access.Clientset, v.pods)
	}
	return nil
}

// furniture is what a Node still lacks of what its NodeType gives it.
type furniture struct {
	labels map[string]string
	taints []corev1.Taint
}

func (f furniture) empty() bool { return len(f.labels) == 0 && len(f.taints) == 0 }

// furnishing compares. While the NodeType is not known nothing is lacking.
func (v *view) furnishing(node *corev1.Node) furniture {
	lacking := furniture{labels: map[string]string{}}
	if v.nodeType == nil {
		return lacking
	}
	for key, value := range documents.NodeLabels(v.nodeType, string(v.machine.UID), v.facts.Revision.Name) {
		if node.Labels[key] != value {
			lacking.labels[key] = value
		}
	}
	for _, want := range documents.NodeTaints(v.nodeType) {
		found := false
		for i := range node.Spec.Taints {
			have := &node.Spec.Taints[i]
			found = found || have.MatchTaint(&want) && have.Value == want.Value
		}
		if !found {
			lacking.taints = append(lacking.taints, want)
		}
	}
	return lacking
}
