package baremetaloperator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TakeSecret deletes the Secret, also one that has a finalizer and would stay readable otherwise, and returns a function that creates it again as it was
// before an operator claimed it.
func TakeSecret(ctx context.Context, c client.Client, key types.NamespacedName) (giveBack func(context.Context) error, err error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", key, err)
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: secret.Type, Data: secret.Data}
	if err := c.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		return nil, fmt.Errorf("remove the finalizers of the Secret %s: %w", key, err)
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, secret)); err != nil {
		return nil, fmt.Errorf("delete the Secret %s: %w", key, err)
	}
	return func(ctx context.Context) error {
		if err := c.Create(ctx, copied); err != nil {
			return fmt.Errorf("create the Secret %s again: %w", key, err)
		}
		return nil
	}, nil
}
