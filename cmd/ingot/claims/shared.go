package claims

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
)

// timeout limits one request, because a person waits for the answer.
const timeout = 15 * time.Second

// Shared is a shared cluster, which is read with the rights of who calls the command.
type Shared struct {
	clientset kubernetes.Interface
	host      string
}

// Open returns the shared cluster that a kubeconfig file reaches. It sends no request.
func Open(kubeconfig string) (Shared, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Shared{}, fmt.Errorf("read --shared-kubeconfig: %w", err)
	}
	config.Timeout = timeout
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Shared{}, fmt.Errorf("reach the shared cluster: %w", err)
	}
	return Shared{clientset, config.Host}, nil
}

// List returns the claims of a namespace; empty: of all.
func (s Shared) List(ctx context.Context, namespace string) ([]resourcev1.ResourceClaim, error) {
	list, err := s.clientset.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, s.failure("list the ResourceClaims", err)
	}
	return list.Items, nil
}

// ListWanted returns which claims of a namespace, empty: of all, pods without a node ask for, as NAMESPACE/NAME; nil, with a note: the caller may not list pods.
func (s Shared) ListWanted(ctx context.Context, notes io.Writer, namespace string) (map[string]bool, error) {
	pods, err := s.clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(notes, "note: you may not list pods of %s, so a claim that waits may be one that no pod asks for\n", s.host)
		return nil, nil
	}
	if err != nil {
		return nil, s.failure("list the pods", err)
	}
	wanted := map[string]bool{}
	for i := range pods.Items {
		pod, _ := entitlement.PodOf(&pods.Items[i], nil)
		for _, claim := range pod.Claims {
			wanted[pod.Namespace+"/"+claim] = true
		}
	}
	return wanted, nil
}

// Match returns those of the TenantClusters that are this cluster. Where that is not known, the only one is taken for it, and a note says so.
func (s Shared) Match(ctx context.Context, notes io.Writer, all []v1alpha1.TenantCluster) ([]v1alpha1.TenantCluster, error) {
	uid, err := s.readUID(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var matching []v1alpha1.TenantCluster
	for _, tenant := range all {
		names = append(names, tenant.Namespace+"/"+tenant.Name)
		if known := tenant.Status.ClusterUID; uid != "" && known == uid || len(all) == 1 && (known == "" || uid == "") {
			matching = append(matching, tenant)
		}
	}
	slices.Sort(names)
	switch listed := strings.Join(names, ", "); {
	case len(matching) == 0 && uid == "":
		return nil, fmt.Errorf("which of the TenantClusters %s --shared-kubeconfig reaches is not known: expected the right to get the namespace %s there", listed, metav1.NamespaceSystem)
	case len(matching) == 0:
		return nil, fmt.Errorf("--shared-kubeconfig reaches another cluster than TenantCluster %s: %s", listed, s.host)
	case uid == "":
		fmt.Fprintf(notes, "note: that --shared-kubeconfig reaches TenantCluster %s is not checked: you may not get the namespace %s of %s\n", listed, metav1.NamespaceSystem, s.host)
	}
	return matching, nil
}

// readUID returns what identifies the cluster, the uid of its namespace kube-system; empty: the caller may not read it.
func (s Shared) readUID(ctx context.Context) (types.UID, error) {
	namespace, err := s.clientset.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", s.failure("read the namespace "+metav1.NamespaceSystem, err)
	}
	return namespace.UID, nil
}

// failure says what was asked of the cluster, and what a person can do about the error.
func (s Shared) failure(what string, err error) error {
	advice := "see that it runs, and that --shared-kubeconfig names the right one"
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		advice = "see that your user may do that there"
	}
	return fmt.Errorf("%s of the shared cluster %s: %w: %s", what, s.host, err, advice)
}
