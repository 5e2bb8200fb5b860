package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keyField is the field of the boot key's Secret; keyBytes its length.
const (
	keyField = "key"
	keyBytes = 32
)

// keyCacheTime is how long a key is used before the Secret is read again. A changed Secret takes effect soon, and many servers that boot
// at once do not cause as many reads.
const keyCacheTime = 15 * time.Second

// bootKey is the key that signs agents' tokens. It is in a Secret, so that every replica has the same.
type bootKey struct {
	reader client.Reader
	// writer makes the Secret; nil: another process makes it.
	writer client.Writer
	name   client.ObjectKey
	random io.Reader
	clock  func() time.Time

	mu   sync.Mutex
	key  []byte
	read time.Time
}

// get returns the key, and creates the Secret when there is none and this process may.
func (k *bootKey) get(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil && k.clock().Sub(k.read) < keyCacheTime {
		return k.key, nil
	}
	key, err := k.readSecret(ctx)
	switch {
	case apierrors.IsNotFound(err) && k.writer == nil:
		err = fmt.Errorf("%w: the manager makes it: see whether one runs in that namespace, and whether boot.keyNamespace names it", err)
	case apierrors.IsNotFound(err):
		key, err = k.createSecret(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("boot key Secret %s: %w", k.name, err)
	}
	k.key, k.read = key, k.clock()
	return key, nil
}

func (k *bootKey) readSecret(ctx context.Context) ([]byte, error) {
	var s corev1.Secret
	if err := k.reader.Get(ctx, k.name, &s); err != nil {
		return nil, err
	}
	if len(s.Data[keyField]) < keyBytes {
		return nil, fmt.Errorf("field %q must hold at least %d random bytes: delete the Secret to have a new one made", keyField, keyBytes)
	}
	return s.Data[keyField], nil
}

// createSecret creates the Secret. When another replica has created it first, the key of that replica is used.
func (k *bootKey) createSecret(ctx context.Context) ([]byte, error) {
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(k.random, key); err != nil {
		return nil, errors.Join(errors.New("read random bytes"), err)
	}
	err := k.writer.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.name.Namespace, Name: k.name.Name},
		Data:       map[string][]byte{keyField: key},
	})
	if apierrors.IsAlreadyExists(err) {
		return k.readSecret(ctx)
	}
	return key, err
}
