package plane

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const pollInterval = 50 * time.Millisecond

// waitForAPIServer waits until kube-apiserver says that it is ready, its own roles included.
func waitForAPIServer(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "kube-apiserver", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// waitForControllers waits for the account of pods that name none: without it, admission refuses them.
func waitForControllers(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the default service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func poll(ctx context.Context, what string, try func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last answer: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
