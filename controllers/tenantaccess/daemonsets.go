package tenantaccess

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of the list of DaemonSets. A verdict does not depend on it; its hints name a few of them.
const (
	daemonSetPage    = 50
	maxDaemonSets    = 500
	maxDaemonSetSize = 4 << 20
)

// DaemonSets lists the DaemonSets of the tenant, trimmed to what says whether they run on a node. Of a tenant with very many or very
// large ones it returns the first.
func (a *Access) DaemonSets(ctx context.Context) ([]appsv1.DaemonSet, error) {
	var kept []appsv1.DaemonSet
	var size int64
	options := metav1.ListOptions{Limit: daemonSetPage}
	for {
		page, err := a.Clientset.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return kept, fmt.Errorf("list DaemonSets: %w", err)
		}
		for i := range page.Items {
			set := trimDaemonSet(&page.Items[i])
			if size += footprint(&set); size > maxDaemonSetSize || len(kept) == maxDaemonSets {
				return kept, nil
			}
			kept = append(kept, set)
		}
		if options.Continue = page.Continue; options.Continue == "" || len(page.Items) == 0 {
			return kept, nil
		}
	}
}

// trimDaemonSet returns the names of a DaemonSet and of its images, and which nodes its pods fit.
func trimDaemonSet(set *appsv1.DaemonSet) appsv1.DaemonSet {
	kept := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: limitText(set.Namespace), Name: limitText(set.Name)}}
	from, to := &set.Spec.Template.Spec, &kept.Spec.Template.Spec
	to.NodeSelector, to.Tolerations = from.NodeSelector, from.Tolerations
	if from.Affinity != nil && from.Affinity.NodeAffinity != nil {
		to.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: from.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}}
	}
	for i := range from.Containers {
		to.Containers = append(to.Containers, corev1.Container{Image: limitText(from.Containers[i].Image)})
	}
	return kept
}
