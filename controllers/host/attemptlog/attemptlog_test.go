package attemptlog_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
	"github.com/ingot-dev/ingot/controllers/host/attemptlog"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

// addHost makes a host with its HostRecord.
func addHost(t *testing.T, namespace, name string) {
	t.Helper()
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	server.Create(t, host)
	server.Create(t, &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost", Name: name, UID: host.UID},
	}}})
}

func TestTheLatestLogOfAHostIsStored(t *testing.T) {
	namespace := server.Namespace(t)
	long := strings.Repeat("a-long-name.", 20) + "end"
	store := &attemptlog.Store{Client: server.Client, APIReader: server.Client}
	at := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	for _, name := range []string{"gpu-1", long} {
		addHost(t, namespace, name)
		save := func(attempt int64, boot int, end int64, text string) {
			t.Helper()
			if err := store.SaveLog(t.Context(), agentlogs.Log{Namespace: namespace, Name: name, Attempt: attempt, Boot: boot, End: end, Text: text, At: at}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(attempt int64, text string) {
			t.Helper()
			got, err := attemptlog.Read(t.Context(), server.Client, namespace, name)
			if err != nil || got.Attempt != attempt || got.Text != text || !got.At.Equal(at) {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if _, err := attemptlog.Read(t.Context(), server.Client, namespace, name); !apierrors.IsNotFound(err) {
			t.Errorf("without a log: %v", err)
		}
		save(3, 1, 10, "one\n")
		want(3, "one\n")
		save(3, 1, 20, "one\ntwo\n")
		save(3, 1, 15, "what another replica has, which received less\n")
		save(2, 9, 99, "an earlier attempt\n")
		want(3, "one\ntwo\n")
		save(3, 2, 5, "a further boot\n")
		want(3, "a further boot\n")
		save(4, 1, 1, "x\x1b]0;owned\x07\n")
		want(4, "x?]0;owned?\n")
	}
}

func TestALogIsGoneWithItsHostAndOverwritesNothingElse(t *testing.T) {
	namespace := server.Namespace(t)
	store := &attemptlog.Store{Client: server.Client, APIReader: server.Client}
	if err := store.SaveLog(t.Context(), agentlogs.Log{Namespace: namespace, Name: "gone", Attempt: 1, Text: "x"}); err != nil {
		t.Errorf("of a host that is gone: %v", err)
	}
	addHost(t, namespace, "gpu-1")
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpu-1-agent-log"}, Data: map[string]string{"mine": "x"}}
	server.Create(t, foreign)
	if err := store.SaveLog(t.Context(), agentlogs.Log{Namespace: namespace, Name: "gpu-1", Attempt: 1, Text: "x"}); err == nil || !strings.Contains(err.Error(), "gpu-1-agent-log") {
		t.Errorf("over a ConfigMap of somebody else: %v", err)
	}
	if err := errors.Join(server.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)); err != nil || foreign.Data["mine"] != "x" {
		t.Errorf("%v %v", foreign.Data, err)
	}
	if _, err := attemptlog.Read(t.Context(), server.Client, namespace, "gpu-1"); err == nil {
		t.Error("somebody else's ConfigMap is read as a log")
	}
}
