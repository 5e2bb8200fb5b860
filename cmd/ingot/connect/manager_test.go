package connect

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// connectWith runs a command with these arguments as far as its client, and returns its flags and what it wrote to standard error.
func connectWith(t *testing.T, kubeconfig string, args ...string) (*Flags, string, error) {
	t.Helper()
	var stderr bytes.Buffer
	var flags *Flags
	var failed error
	c := &cobra.Command{Use: "look", RunE: func(cmd *cobra.Command, _ []string) error { _, failed = flags.Client(cmd); return nil }}
	flags = AddFlags(c)
	c.SetArgs(append(args, "--kubeconfig", kubeconfig))
	c.SetErr(&stderr)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return flags, stderr.String(), failed
}

func TestACommandSaysWhenNoManagerWorks(t *testing.T) {
	kubeconfig := server.KubeconfigFile(t)
	// A manager works without a Lease where leaderElection.enabled is false, and with another one where its name is set: nothing is claimed.
	if flags, stderr, err := connectWith(t, kubeconfig); err != nil || flags.Manager().Outage != nil || !strings.HasPrefix(stderr, "note: there is no Lease ingot-system/ingot-manager") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("without a Lease: %q, %+v, %v", stderr, flags.Manager(), err)
	}
	if _, _, err := connectWith(t, kubeconfig, "--manager-lease", "here"); err == nil || !strings.Contains(err.Error(), "expected NAMESPACE/NAME") {
		t.Errorf("a lease without a namespace: %v", err)
	}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaderlease.DefaultNamespace}})
	key := client.ObjectKey{Namespace: leaderlease.DefaultNamespace, Name: leaderlease.DefaultName}
	holder, seconds, now := "ingot-manager-0_uuid", int32(15), metav1.NowMicro()
	server.Create(t, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	})
	if flags, stderr, err := connectWith(t, kubeconfig); err != nil || stderr != "" || flags.Manager().Text() != "" {
		t.Errorf("a manager that works: %q, %+v, %v", stderr, flags.Manager(), err)
	}
	in := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	if m := readManager(t.Context(), server.Client, key, false, in(10*time.Minute)); m.Outage == nil || m.Outage.Holder != "ingot-manager-0" || !strings.Contains(m.Text(), "no ingot-manager works since "+now.UTC().Format("2006-01-02T15:04")) {
		t.Errorf("ten minutes after the manager died: %+v", m)
	}
}

// TestTheLeaseOfAManagerIsFoundByItsLabel: namespace and leaderElection.name can be set, and leader election can be disabled.
func TestTheLeaseOfAManagerIsFoundByItsLabel(t *testing.T) {
	old, current := server.Namespace(t), server.Namespace(t)
	holder, seconds, now := "ingot-manager-0_uuid", int32(15), time.Now()
	before := metav1.NewMicroTime(now.Add(-time.Hour))
	// It was left by the manager before it moved. Its managed fields say when it was written here, so it is judged at a later time below.
	left := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: old, Name: leaderlease.DefaultName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &before}}
	server.Create(t, left)
	key, later := client.ObjectKeyFromObject(left), now.Add(time.Hour)
	at := func() time.Time { return later }
	if m := readManager(t.Context(), server.Client, key, false, at); m.Outage == nil {
		t.Errorf("before another manager is there: %+v", m)
	}
	renewed := metav1.NewMicroTime(later)
	moved := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: current, Name: "other", Labels: map[string]string{leaderlease.Label: leaderlease.LabelValue}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	server.Create(t, moved)
	if m := readManager(t.Context(), server.Client, client.ObjectKey{Namespace: old, Name: "none"}, false, at); m.Text() != "" {
		t.Errorf("there is none of the known name: %+v", m)
	}
	// A tenant may have such a Lease too, so the one that is left counts until the user names the other or deletes it.
	named := "--manager-lease " + current + "/other"
	if m := readManager(t.Context(), server.Client, key, false, at); m.Outage == nil || m.Outage.Holder != "ingot-manager-0" || !strings.Contains(m.Text(), named) {
		t.Errorf("one is left: %+v", m)
	}
	if m := readManager(t.Context(), server.Client, client.ObjectKeyFromObject(moved), true, at); m.Text() != "" {
		t.Errorf("the user has named the one that is renewed: %+v", m)
	}
	if m := readManager(t.Context(), server.Client, key, true, at); m.Outage == nil || strings.Contains(m.Text(), named) {
		t.Errorf("the user has named the one that is left: %+v", m)
	}
	if err := server.Client.Delete(t.Context(), moved.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Get(t.Context(), key, left); err != nil {
		t.Fatal(err)
	}
	left.Annotations = map[string]string{leaderlease.AnnotationDisabled: now.Add(time.Minute).UTC().Format(time.RFC3339)}
	if err := server.Client.Update(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if m := readManager(t.Context(), server.Client, key, false, at); m.Outage != nil || !strings.Contains(m.Text(), "works without leader election") {
		t.Errorf("without leader election: %+v", m)
	}
	// Every command says so: nothing else would tell that such a manager is dead.
	if _, stderr, err := connectWith(t, server.KubeconfigFile(t), "--manager-lease", key.String()); err != nil || !strings.HasPrefix(stderr, "note: the ingot-manager that was started at ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("without leader election: %q, %v", stderr, err)
	}
}

func TestAUserWhoMayNotReadTheLeaseIsToldNothingUnasked(t *testing.T) {
	kubeconfig := server.KubeconfigFile(t)
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	stranger := bytes.Replace(text, []byte("user:\n"), []byte("user:\n    as: stranger\n"), 2)
	if err := os.WriteFile(kubeconfig, stranger, 0o600); err != nil {
		t.Fatal(err)
	}
	flags, stderr, err := connectWith(t, kubeconfig, "--manager-lease", "elsewhere/ingot-manager")
	if err != nil || stderr != "" {
		t.Errorf("%q, %v", stderr, err)
	}
	if m := flags.Manager(); m.Outage != nil || !strings.Contains(m.Text(), "you may not read the Lease elsewhere/ingot-manager") {
		t.Errorf("%+v", m)
	}
}

// The clock of a laptop may be hours away from that of the cluster.
func TestTheTimeIsThatOfTheServer(t *testing.T) {
	clock := &serverClock{date: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), at: time.Now()}
	if got := clock.now(); got.Year() != 2030 {
		t.Errorf("%v", got)
	}
	_, _, err := connectWith(t, server.KubeconfigFile(t))
	if err != nil {
		t.Fatal(err)
	}
}
