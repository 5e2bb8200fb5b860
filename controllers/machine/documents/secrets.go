package documents

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
)

// Unreadable is a Secret that the node needs and that only a person can mend.
type Unreadable struct {
	// Message says which Secret and key, for which file, and who must do what. It quotes no content.
	Message string
}

// Error is the message.
func (u *Unreadable) Error() string { return u.Message }

// Secrets reads what the plan's files are from the Secrets of the host namespace. The reader must be the API server itself:
// Secrets are never cached. The error is an *Unreadable where a person must do something.
func Secrets(ctx context.Context, reader client.Reader, namespace string, plan v1alpha1.NodePlan) (cloudinit.Secrets, error) {
	out := cloudinit.Secrets{Namespace: namespace, Contents: map[cloudinit.SecretKey][]byte{}}
	for _, f := range plan.SecretFiles {
		lacks := func(what, do string) error {
			return &Unreadable{Message: fmt.Sprintf("Secret %s/%s %s; the node's %s is its key %s: %s", namespace, f.Secret, what, f.Path, f.Key, do)}
		}
		var secret corev1.Secret
		switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: f.Secret}, &secret); {
		case apierrors.IsNotFound(err):
			return cloudinit.Secrets{}, lacks("does not exist", "whoever runs the hosts creates it with that key")
		case apierrors.IsForbidden(err):
			return cloudinit.Secrets{}, lacks("must not be read", "whoever runs the hosts binds ClusterRole ingot-manager-hosts to Ingot's service account by a RoleBinding in that namespace")
		case err != nil:
			return cloudinit.Secrets{}, fmt.Errorf("read Secret %s/%s: %w", namespace, f.Secret, err)
		case len(secret.Data[f.Key]) == 0:
			return cloudinit.Secrets{}, lacks("lacks the key, or it is empty", "whoever runs the hosts puts the content there")
		}
		out.Contents[cloudinit.SecretKey{Secret: f.Secret, Key: f.Key}] = secret.Data[f.Key]
	}
	return out, nil
}
