package strangerbook_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
	"github.com/ingot-dev/ingot/controllers/host/strangerbook"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

const registered = "52:54:00:00:00:99"

func TestAFloodOfStrangersIsOneWriteAndOneLine(t *testing.T) {
	namespace := server.Namespace(t)
	withWatch, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	counted := interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			calls++
			return c.Get(ctx, key, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			calls++
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			calls++
			return c.Update(ctx, o, options...)
		},
	})
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var lines bytes.Buffer
	replica := func(c client.Client) *strangerbook.Book {
		return &strangerbook.Book{
			APIReader: c, Writer: c, Namespace: namespace, Clock: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&lines, nil)),
			IsKnown: func(_ context.Context, mac string) bool { return mac == registered },
		}
	}
	flooded, quiet := replica(counted), replica(server.Client)
	quiet.Note(strangers.Sighting{MAC: "52:54:00:00:00:01", Asked: strangers.AskedDHCP, Architecture: "EFI x86-64"})
	quiet.Save(t.Context())
	now = now.Add(time.Hour)
	for i := range 20000 {
		flooded.Note(strangers.Sighting{MAC: fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>16, i>>8&255, i&255), Asked: strangers.AskedDHCP})
	}
	now = now.Add(time.Second)
	flooded.Note(strangers.Sighting{MAC: "52:54:00:00:00:01", Asked: strangers.AskedBootDocument})
	flooded.Note(strangers.Sighting{MAC: registered, Asked: strangers.AskedBootDocument})
	if calls != 0 {
		t.Errorf("the requests of strangers cost %d requests to the API server", calls)
	}
	lines.Reset()
	for range 3 {
		flooded.Save(t.Context())
	}
	if calls != 2 {
		t.Errorf("%d requests to the API server, want a read and a write", calls)
	}
	if n := bytes.Count(lines.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, lines.String())
	}
	stored := &corev1.ConfigMap{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: strangerbook.Name}, stored); err != nil {
		t.Fatal(err)
	}
	all, err := strangerbook.Decode(stored)
	if err != nil || len(all) != strangers.Max-1 { // one of them is registered
		t.Fatalf("%d strangers are stored: %v", len(all), err)
	}
	first := all[0]
	if first.MAC != "52:54:00:00:00:01" || first.Architecture != "EFI x86-64" || len(first.Asked) != 2 || first.LastSeen.Sub(first.FirstSeen) != time.Hour+time.Second {
		t.Errorf("what two replicas saw of one stranger: %+v", first)
	}
	for _, s := range all {
		if s.MAC == registered {
			t.Error("a host is listed as a stranger")
		}
	}
}
