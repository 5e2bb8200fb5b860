// Package strangerbook keeps in one ConfigMap which strangers asked a boot service, so that a person sees the servers that nobody has registered.
//
// All replicas of a boot service write the same ConfigMap, each at most once in a minute, however many strangers ask.
package strangerbook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
)

const (
	// Name is the name of the ConfigMap.
	Name = "ingot-strangers"
	// Label is on every ConfigMap with strangers.
	Label = "ingot.dev/strangers"
	// key is the list in the ConfigMap, as JSON.
	key = "strangers.json"
	// interval is the least time between two writes.
	interval = time.Minute
	// maxConflicts is how often a write is tried against those of other replicas.
	maxConflicts = 5
)

// Book writes the strangers of one process.
type Book struct {
	// APIReader and Writer read and write the ConfigMap without a cache.
	APIReader client.Reader
	Writer    client.Writer
	// Namespace is the boot service's own.
	Namespace string
	// IsKnown reports whether the MAC address is that of a host.
	IsKnown func(ctx context.Context, mac string) bool
	Clock   func() time.Time
	Log     *slog.Logger

	list strangers.List
}

// Note adds a sighting. It costs no request to the API server.
func (b *Book) Note(s strangers.Sighting) { b.list.Note(s, b.Clock()) }

// NeedLeaderElection returns false: every replica is asked by strangers.
func (b *Book) NeedLeaderElection() bool { return false }

// Start writes what was noted until ctx ends.
func (b *Book) Start(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			b.Save(ctx)
		}
	}
}

// Save writes what was noted since it was called last. What could not be written is written with the next.
func (b *Book) Save(ctx context.Context) {
	seen, isChanged := b.list.Changed()
	if !isChanged {
		return
	}
	if err := b.write(ctx, seen); err != nil {
		b.list.SetChanged()
		b.Log.Warn("the strangers that asked the boot service are not stored", "error", err)
		return
	}
	b.Log.Info("servers that are nobody's ask the boot service: `ingot hosts --strangers` lists them", "strangers", len(seen))
}

func (b *Book) write(ctx context.Context, seen []strangers.Stranger) error {
	for range maxConflicts {
		stored := &corev1.ConfigMap{}
		err := b.APIReader.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: Name}, stored)
		isMissing := apierrors.IsNotFound(err)
		if err != nil && !isMissing {
			return err
		}
		before, err := Decode(stored)
		if err != nil {
			b.Log.Warn("the stored strangers are replaced", "error", err)
		}
		merged := strangers.Merge(before, seen, func(mac string) bool { return b.IsKnown(ctx, mac) }, b.Clock())
		text, err := json.Marshal(merged)
		if err != nil {
			return err
		}
		stored.Namespace, stored.Name, stored.Data = b.Namespace, Name, map[string]string{key: string(text)}
		metav1.SetMetaDataLabel(&stored.ObjectMeta, Label, "")
		if isMissing {
			err = b.Writer.Create(ctx, stored)
		} else {
			err = b.Writer.Update(ctx, stored)
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s/%s was changed by others %d times meanwhile", b.Namespace, Name, maxConflicts)
}

// Decode returns the strangers in a ConfigMap; none where it has none.
func Decode(m *corev1.ConfigMap) ([]strangers.Stranger, error) {
	text, found := m.Data[key]
	if !found {
		return nil, nil
	}
	var out []strangers.Stranger
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s cannot be read: %w: delete it", m.Namespace, m.Name, err)
	}
	return out, nil
}
