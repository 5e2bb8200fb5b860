// Package eviction finds the pods that must leave a node before it stops, asks them to, and names what keeps them. It forces
// nothing: whoever calls it asks again, round after round.
package eviction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/ptr"
)

// Pods lists what kubectl drain --force --ignore-daemonsets --delete-emptydir-data would evict, pods that are leaving included.
func Pods(ctx context.Context, tenant kubernetes.Interface, node string) ([]corev1.Pod, error) {
	helper := &drain.Helper{
		Ctx: ctx, Client: tenant, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		GracePeriodSeconds: -1, Out: io.Discard, ErrOut: io.Discard,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, fmt.Errorf("list the Node's pods: %w", utilerrors.NewAggregate(errs))
	}
	return list.Pods(), nil
}

// Ask asks once for every pod that is not leaving yet. A disruption budget that says no is no error: the next round asks again.
func Ask(ctx context.Context, tenant kubernetes.Interface, pods []corev1.Pod) error {
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
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err) {
			failures = append(failures, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(failures...)
}

// Budgets names, as namespace/name, the disruption budgets that let none of the pods go now. They only serve a message: where
// they may not be listed, that is said in their place.
func Budgets(ctx context.Context, tenant kubernetes.Interface, pods []corev1.Pod) []string {
	var names []string
	listed := map[string][]policyv1.PodDisruptionBudget{}
	for i := range pods {
		pod := &pods[i]
		budgets, known := listed[pod.Namespace]
		if !known {
			list, err := tenant.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				names = append(names, fmt.Sprintf("of namespace %s (cannot be listed: %v)", pod.Namespace, err))
			} else {
				budgets = list.Items
			}
			listed[pod.Namespace] = budgets
		}
		for j := range budgets {
			if name := budgets[j].Namespace + "/" + budgets[j].Name; keeps(&budgets[j], pod) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// keeps tells whether the budget selects the pod and allows no disruption. A pod that is leaving needs none.
func keeps(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && pod.DeletionTimestamp == nil && b.Status.DisruptionsAllowed == 0 && selector.Matches(labels.Set(pod.Labels))
}
