package serverclock

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store has one Lease, and refuses an update of an older version as the API server does.
type store struct {
	client.Client
	lease   *coordinationv1.Lease
	refused error
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.lease == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, key.Name)
	}
	s.lease.DeepCopyInto(into.(*coordinationv1.Lease))
	return nil
}

func (s *store) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	o.SetResourceVersion("1")
	s.lease = o.(*coordinationv1.Lease).DeepCopy()
	return nil
}

func (s *store) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	switch {
	case s.refused != nil:
		return s.refused
	case o.GetResourceVersion() != s.lease.ResourceVersion:
		return errors.New("conflict")
	}
	o.SetResourceVersion(o.GetResourceVersion() + "1")
	s.lease = o.(*coordinationv1.Lease).DeepCopy()
	return nil
}

// memory is what is to be remembered.
type memory struct{ text, restored string }

func (m *memory) Save() (string, error) { return m.text, nil }

func (m *memory) Restore(text string) error {
	m.restored = text
	return nil
}

func newKeeper(c *Clock, store client.Client) (*Keeper, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(10)
	return &Keeper{
		Clock: c, Reader: store, Writer: store, Lease: client.ObjectKey{Namespace: "ingot-system", Name: "ingot-manager-clock"}, Recorder: recorder, Grants: &memory{}, Log: slog.New(slog.DiscardHandler),
	}, recorder
}

func TestARestartGoesOnWhereTheLastManagerWas(t *testing.T) {
	for _, test := range []struct {
		about string
		away  time.Duration
		want  bool
	}{
		{"a restart", time.Minute, true},
		{"an outage", 10 * time.Minute, false},
		{"a server whose clock was set back meanwhile", -time.Hour, false},
		{"a server whose clock was set forward meanwhile", 24 * time.Hour, false},
	} {
		store := &store{}
		m, c := newClock()
		c.Note(noon)
		k, _ := newKeeper(c, store)
		k.Grants = &memory{text: "granted"}
		for range 90 {
			if err := k.keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.pass(time.Minute)
			c.Note(noon.Add(m.wall.Sub(noon)))
		}
		m, next := newClock()
		m.wall = noon.Add(90*time.Minute + test.away)
		next.Note(m.wall)
		k, _ = newKeeper(next, store)
		remembered := &memory{}
		k.Grants = remembered
		if err := k.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if remembered.restored != "granted" {
			t.Errorf("%s: what was granted is forgotten: %q", test.about, remembered.restored)
		}
		if w := next.Watched(); (w.Elapsed(noon) > time.Hour) != test.want {
			t.Errorf("%s: %s are certain", test.about, w.Elapsed(noon))
		}
	}
}

func TestAFailureIsTriedAgainFromWhatIsStored(t *testing.T) {
	store := &store{}
	m, c := newClock()
	k, recorder := newKeeper(c, store)
	for i := range 4 {
		store.refused = nil
		if i == 1 {
			store.refused = errors.New("refused")
		}
		if err := k.keep(t.Context()); !errors.Is(err, store.refused) {
			t.Errorf("write %d: %v", i, err)
		}
		m.pass(time.Minute)
	}
	if spec := store.lease.Spec; !spec.RenewTime.Equal(&metav1.MicroTime{Time: noon.Add(3 * time.Minute)}) {
		t.Errorf("%+v", spec)
	}
	m.wall = m.wall.Add(time.Hour)
	c.Note(noon)
	for range 3 {
		if err := k.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	if e := <-recorder.Events; !strings.Contains(e, ReasonClocksDiffer) || !strings.Contains(e, "set it by the same source") {
		t.Error(e)
	}
}
