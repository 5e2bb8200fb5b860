package claims

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
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
		return nil, fmt.Errorf("list the ResourceClaims of the shared cluster %s: %w: see that your user may list them, or name a --claim-namespace", s.host, err)
	}
	return list.Items, nil
}

// UID returns what identifies the cluster, the uid of its namespace kube-system; empty: it cannot be read.
func (s Shared) UID(ctx context.Context) types.UID {
	namespace, err := s.clientset.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return namespace.UID
}
