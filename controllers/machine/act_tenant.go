package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// errTenantLost is returned where the tenant could be used when the action was planned and cannot be used now.
var errTenantLost = errors.New("the tenant's API server cannot be used")

func (r *Reconciler) createToken(ctx context.Context, obs *observation, a lifecycle.Action) error {
	if obs.access == nil {
		return errTenantLost
	}
	id, secret, err := r.tokenFor(obs, a.TokenID)
	if err != nil {
		return err
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: tokenNamespace, Name: tokenPrefix + id, Labels: map[string]string{v1alpha1.LabelMachine: string(obs.machine.ClaimUID())}},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			keyTokenID: []byte(id), keyTokenSecret: []byte(secret), keyExpiration: []byte(tokenExpiration(obs.access, a.Expires)),
			"usage-bootstrap-authentication": []byte("true"), "auth-extra-groups": []byte(tenantaccess.BootstrapGroup + "," + tenantaccess.KubeadmBootstrapGroup),
			"description": []byte("Ingot: Machine " + obs.machine.Namespace + "/" + obs.machine.Name),
		},
	}
	if obs.tenant != nil {
		addMethod(token, obs.tenant.Spec.Join.Method())
	}
	r.tokens.forget(obs.machine.ClaimUID())
	return client.IgnoreAlreadyExists(obs.access.Client.Create(ctx, token))
}

// addMethod adds to the token what the join's method needs: the signature of kube-public/cluster-info, by which kubeadm knows that it has it from the
// cluster; and the labels of vCluster's own tokens for workers (loft-sh/vcluster, cmd/vclusterctl/cmd/token/create.go).
func addMethod(token *corev1.Secret, method v1alpha1.JoinMethod) {
	if method.IsKubeadm() {
		token.Data["usage-bootstrap-signing"] = []byte("true")
	}
	if method == v1alpha1.JoinVCluster {
		token.Labels["vcluster.loft.sh/token"], token.Labels["vcluster.loft.sh/token-node-type"] = "true", "worker"
	}
}

// tokenFor generates a bootstrap token, or returns the one in the claim Secret whose id is given.
func (r *Reconciler) tokenFor(obs *observation, id string) (tokenID, secret string, err error) {
	if id != "" {
		kept, secret, found := strings.Cut(string(obs.secret.Data[documents.KeyToken]), ".")
		if !found || kept != id {
			return "", "", fmt.Errorf("the claim Secret %s does not hold the token that its annotation names: delete it, and the installation begins anew", documents.ClaimKey(obs.host, obs.secretAttempt()))
		}
		return id, secret, nil
	}
	if tokenID, err = r.randomToken(6); err != nil {
		return "", "", err
	}
	secret, err = r.randomToken(16)
	return tokenID, secret, err
}

// randomToken returns n characters of the alphabet of bootstrap tokens, all equally likely.
func (r *Reconciler) randomToken(n int) (string, error) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	const fair = 256 - 256%len(alphabet)
	text, buffer := make([]byte, 0, n), make([]byte, 1)
	for len(text) < n {
		if _, err := io.ReadFull(r.Random, buffer); err != nil {
			return "", fmt.Errorf("make a bootstrap token: %w", err)
		}
		if int(buffer[0]) < fair {
			text = append(text, alphabet[int(buffer[0])%len(alphabet)])
		}
	}
	return string(text), nil
}

// joinParameters returns how the node joins with the token that was observed.
func (obs *observation) joinParameters() (*kubelet.Join, error) {
	if obs.token == nil || obs.access == nil || obs.tenant == nil {
		return nil, errors.New("the bootstrap token or the tenant was lost meanwhile")
	}
	token := string(obs.token.Data[keyTokenID]) + "." + string(obs.token.Data[keyTokenSecret])
	return &kubelet.Join{Endpoint: obs.endpoint(obs.access), CA: obs.access.CA, Token: token}, nil
}

func (r *Reconciler) renewToken(ctx context.Context, obs *observation, a lifecycle.Action) error {
	if obs.access == nil || obs.token == nil {
		return errTenantLost
	}
	before := obs.token.DeepCopy()
	obs.token.Data[keyExpiration] = []byte(tokenExpiration(obs.access, a.Expires))
	r.tokens.forget(obs.machine.ClaimUID())
	return obs.access.Client.Patch(ctx, obs.token, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// tokenExpiration returns the end of a token for the tenant's cluster, which ends it by its own clock.
func tokenExpiration(access *tenantaccess.Access, at time.Time) string {
	return at.Add(access.ClockAhead).UTC().Format(time.RFC3339)
}

func (r *Reconciler) deleteToken(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	if obs.access == nil || obs.token == nil {
		return errTenantLost
	}
	r.tokens.forget(obs.machine.ClaimUID())
	return r.deletions.Try(ctx, obs.access.Client, obs.token, obs.facts.Now)
}

func (r *Reconciler) syncNodeMetadata(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	return obs.patchNode(ctx, func(n *corev1.Node) {
		lacking := obs.missingNodeMetadata(n)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		for key, value := range lacking.labels {
			n.Labels[key] = value
		}
		for _, want := range lacking.taints {
			n.Spec.Taints = withTaint(n.Spec.Taints, want)
		}
	})
}

// withTaint adds a taint, or changes the value of the one with its key and effect.
func withTaint(taints []corev1.Taint, want corev1.Taint) []corev1.Taint {
	for i := range taints {
		if taints[i].MatchTaint(&want) {
			taints[i].Value = want.Value
			return taints
		}
	}
	return append(taints, want)
}

func (r *Reconciler) cordon(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	return obs.patchNode(ctx, func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationCordoned, "true")
	})
}

func (r *Reconciler) uncordon(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	return obs.patchNode(ctx, func(n *corev1.Node) {
		n.Spec.Unschedulable = false
		delete(n.Annotations, v1alpha1.AnnotationCordoned)
	})
}

// patchNode changes the Node under the resource version that was read. Another Node of the same name is therefore not changed,
// and a gate taint that the validation controller added meanwhile to the same list is not lost.
func (obs *observation) patchNode(ctx context.Context, change func(*corev1.Node)) error {
	if obs.access == nil || obs.node == nil {
		return errTenantLost
	}
	node := obs.node.DeepCopy()
	change(node)
	return obs.access.Client.Patch(ctx, node, client.MergeFromWithOptions(obs.node, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) evict(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	if obs.access == nil {
		return errTenantLost
	}
	return evictPods(ctx, obs.access.Clientset, obs.pods)
}

func (r *Reconciler) deleteNode(ctx context.Context, obs *observation, a lifecycle.Action) error {
	if obs.access == nil || obs.node == nil || obs.node.UID != a.NodeUID {
		return errTenantLost
	}
	return r.deletions.Try(ctx, obs.access.Client, obs.node, obs.facts.Now)
}

// evictPods requests one eviction for each pod that is not being deleted yet. A refusal by a disruption budget is not an error: the
// next reconcile requests again. It ends at the first request that the tenant does not answer, or at the deadline of ctx. Without it: a
// tenant that stops answering in the middle of a drain costs a timeout for each of hundreds of pods, all with the same worker.
func evictPods(ctx context.Context, tenant kubernetes.Interface, pods []corev1.Pod) error {
	var failures []error
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := tenant.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(pod.UID)}},
		})
		switch {
		case err == nil || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsConflict(err):
			continue
		case !tenantaccess.IsAnswer(err):
			return errors.Join(append(failures, fmt.Errorf("pod %s/%s, and the %d pods after it were not asked for: %w", pod.Namespace, pod.Name, len(pods)-i-1, err))...)
		}
		failures = append(failures, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	return errors.Join(failures...)
}
