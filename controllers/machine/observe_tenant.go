package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
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

func tenantProblem(err error) (reason, message string) {
	var trouble *tenantaccess.Error
	if errors.As(err, &trouble) {
		return trouble.Reason, trouble.Err.Error()
	}
	return v1alpha1.ReasonTenantUnreachable, err.Error()
}

// setUnreachable marks the tenant as unreachable, after a call of this reconcile has failed.
func (obs *observation) setUnreachable(err error) {
	obs.access = nil
	obs.facts.Tenant.Reachable = false
	obs.facts.Tenant.Reason, obs.facts.Tenant.Message = v1alpha1.ReasonTenantUnreachable, err.Error()
}

// observeToken reads the Machine's bootstrap token in the phases in which there may be one. It reads from the tenant's API
// server: a cache might not have the token that was just created, and a second one would be created.
func (r *Reconciler) observeToken(ctx context.Context, obs *observation) error {
	scrubbed := obs.facts.Secret.Found && obs.facts.Secret.TokenID == "" && obs.facts.Secret.Attempt == obs.machine.Status.Attempt
	if obs.access == nil || obs.machine.Status.Attempt == 0 || scrubbed {
		return nil
	}
	if !obs.facts.CanHaveToken() {
		return nil
	}
	if token, isKnown := r.tokens.get(obs.facts); isKnown {
		isSettled := token != nil && obs.facts.IsTokenSettled(*token)
		if isSettled || !obs.isCurrent {
			obs.facts.Token, obs.unconfirmedToken = token, !isSettled
			return nil
		}
	}
	return r.readToken(ctx, obs)
}

// readToken lists the Machine's bootstrap tokens at the tenant's API server.
func (r *Reconciler) readToken(ctx context.Context, obs *observation) error {
	tokens, err := obs.access.Clientset.CoreV1().Secrets(tokenNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: v1alpha1.LabelMachine + "=" + string(obs.machine.ClaimUID()), Limit: maxTokens,
	})
	if err != nil {
		obs.setUnreachable(fmt.Errorf("list bootstrap tokens: %w", err))
		return nil
	}
	if obs.token = r.chooseToken(tokens.Items, obs.facts); obs.token == nil {
		r.tokens.add(obs.machine.ClaimUID(), nil, obs.facts.Now)
		return nil
	}
	// A token whose end cannot be read counts as one that has ended: it is renewed, or deleted.
	expires, err := time.Parse(time.RFC3339, string(obs.token.Data[keyExpiration]))
	if expires = expires.Add(-obs.access.ClockAhead); err != nil {
		expires = time.Time{}
	}
	obs.facts.Token = &lifecycle.Token{ID: string(obs.token.Data[keyTokenID]), Expires: expires}
	if obs.facts.Token.Undeletable = r.deletions.Problem(obs.token, obs.facts.Now); obs.facts.Token.Undeletable != "" {
		r.tokens.forget(obs.machine.ClaimUID())
		return nil
	}
	r.tokens.add(obs.machine.ClaimUID(), obs.facts.Token, obs.facts.Now)
	return nil
}

// chooseToken returns the token that is decided about: one that can be deleted before one that cannot, and among those the one that the claim Secret
// names. It returns nil when there is none.
func (r *Reconciler) chooseToken(tokens []corev1.Secret, f lifecycle.Facts) *corev1.Secret {
	var chosen *corev1.Secret
	highest := -1
	for i := range tokens {
		rank := 0
		if string(tokens[i].Data[keyTokenID]) == f.Secret.TokenID {
			rank = 1
		}
		if r.deletions.Problem(&tokens[i], f.Now) == "" {
			rank += 2
		}
		if rank > highest {
			chosen, highest = &tokens[i], rank
		}
	}
	return chosen
}

// observeNode reads the Node from the cache. During a drain or a release the Machine goes on once the Node is gone, so what is decided then is confirmed.
func (r *Reconciler) observeNode(ctx context.Context, obs *observation) error {
	if obs.access == nil || !canHaveNode(obs.machine.Status.Phase) {
		return nil
	}
	leaving := obs.machine.Status.Phase == v1alpha1.MachineReleasing || obs.machine.Status.Phase == v1alpha1.MachineDraining
	reader := obs.access.Cache
	if leaving && obs.isCurrent {
		reader = obs.access.Client
	}
	obs.unconfirmedNode = leaving && !obs.isCurrent
	node, err := read(ctx, reader, clusterKey(obs.machine.Name), &corev1.Node{})
	if err != nil {
		obs.setUnreachable(err)
		return nil
	}
	if node == nil {
		return nil
	}
	obs.node = node
	obs.facts.Node = lifecycle.Node{
		Found: true, UID: node.UID, ProviderID: node.Spec.ProviderID, SystemUUID: node.Status.NodeInfo.SystemUUID, Installation: node.Labels[v1alpha1.LabelInstallation],
		BootID: node.Status.NodeInfo.BootID, Unschedulable: node.Spec.Unschedulable, Missing: obs.observeNodeMetadata(ctx, node),
	}
	if obs.machine.Status.Phase != v1alpha1.MachineReady {
		obs.facts.Node.Undeletable = r.deletions.Problem(node, obs.facts.Now)
	}
	_, obs.facts.Node.CordonedByIngot = node.Annotations[v1alpha1.AnnotationCordoned]
	if leaving {
		return r.observePods(ctx, obs)
	}
	return nil
}

// observePods lists the pods that must be evicted while a cordoned Node is emptied and, once the time of a roll's eviction is over, the disruption budgets
// that block them.
func (r *Reconciler) observePods(ctx context.Context, obs *observation) error {
	if !obs.facts.Node.Unschedulable || !obs.facts.CanEvict() {
		return nil
	}
	pods, err := podsToEvict(ctx, obs.access.Clientset, obs.node.Name)
	if err != nil {
		obs.setUnreachable(err)
		return nil
	}
	obs.pods = pods
	for i := range obs.pods {
		obs.facts.Node.Pods = append(obs.facts.Node.Pods, client.ObjectKeyFromObject(&obs.pods[i]).String())
	}
	if obs.machine.Status.Phase == v1alpha1.MachineDraining && obs.facts.IsDrainOver() {
		obs.facts.Node.Budgets = blockingBudgets(ctx, obs.access.Clientset, obs.pods)
	}
	return nil
}

// tokenMemory is how long a token that was read is not read again while nothing is to be done about it.
const tokenMemory = 10 * time.Minute

// tokenCache remembers the bootstrap tokens that were read from tenants, and that there was none, by the uid of their Machine, so that a tenant's API server is
// not asked again while nothing is done about the token. It holds no secret. The zero value is empty. It is lost at a restart, after
// which each token is read once more.
type tokenCache struct{ tokens sync.Map }

// observedToken is a token, nil: there was none, and when it was read.
type observedToken struct {
	token *lifecycle.Token
	at    time.Time
}

// add remembers what was read now: a token, or nil where there is none.
func (c *tokenCache) add(machine types.UID, token *lifecycle.Token, now time.Time) {
	c.tokens.Store(machine, observedToken{token, now})
}

func (c *tokenCache) forget(machine types.UID) { c.tokens.Delete(machine) }

// get returns what was read of a Machine's token not long ago. One about which nothing is to be done needs no more. Otherwise, and where there was none, it is
// confirmed before anything is done about it. Where the Machine is deleted the tenant is asked.
func (c *tokenCache) get(f lifecycle.Facts) (token *lifecycle.Token, isKnown bool) {
	found, isFound := c.tokens.Load(f.Machine.UID)
	if !isFound {
		return nil, false
	}
	known := found.(observedToken)
	if f.Machine.Deleting || f.Now.Sub(known.at) >= tokenMemory {
		c.forget(f.Machine.UID)
		return nil, false
	}
	return known.token, true
}

// listPage is how many pods are asked for at once, so that no answer of an honest tenant is too large.
const listPage = 50

// maxTokens is how many bootstrap tokens of a Machine are read. There is one, and a second one after a restart in a bad moment.
const maxTokens = 16

// podsToEvict lists the pods that kubectl drain --force --ignore-daemonsets --delete-emptydir-data would evict from the node. Pods
// that are being deleted already are among them.
func podsToEvict(ctx context.Context, tenant kubernetes.Interface, node string) ([]corev1.Pod, error) {
	helper := &drain.Helper{
		Ctx: ctx, Client: tenant, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		GracePeriodSeconds: -1, ChunkSize: listPage, Out: io.Discard, ErrOut: io.Discard,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, fmt.Errorf("list the Node's pods: %w", utilerrors.NewAggregate(errs))
	}
	return list.Pods(), nil
}

// maxBudgets is how many disruption budgets of a namespace are compared. They are only used in a message.
const maxBudgets = 200

// blockingBudgets returns, as namespace/name, the disruption budgets that allow no eviction of the pods now. They are only used in a
// message: where budgets cannot be listed, the list says so instead. It ends at the first request that the tenant does not answer.
func blockingBudgets(ctx context.Context, tenant kubernetes.Interface, pods []corev1.Pod) []string {
	var names []string
	listed := map[string][]policyv1.PodDisruptionBudget{}
	for i := range pods {
		pod := &pods[i]
		if _, known := listed[pod.Namespace]; !known {
			list, err := tenant.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{Limit: maxBudgets})
			if err != nil {
				names = append(names, fmt.Sprintf("of namespace %s (cannot be listed: %v)", pod.Namespace, err))
				if !tenantaccess.IsAnswer(err) {
					return names
				}
				list = &policyv1.PodDisruptionBudgetList{}
			}
			listed[pod.Namespace] = list.Items
		}
		budgets := listed[pod.Namespace]
		for j := range budgets {
			if name := budgets[j].Namespace + "/" + budgets[j].Name; isBlocking(&budgets[j], pod) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// isBlocking tells whether the budget selects the pod and allows no disruption. A pod that is being deleted is not blocked.
func isBlocking(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && pod.DeletionTimestamp == nil && b.Status.DisruptionsAllowed == 0 && selector.Matches(labels.Set(pod.Labels))
}
