package vm_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// order makes a Machine of the NodeType.
func (s *site) order(name, nodeType string) {
	s.t.Helper()
	err := s.client.Create(s.t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}, Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenantName},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// release deletes the Machine.
func (s *site) release(name string) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}); err != nil {
		s.t.Fatal(err)
	}
}

// record returns the HostRecord of the server.
func (s *site) record() (*v1alpha1.HostRecord, error) {
	record := &v1alpha1.HostRecord{}
	err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: hosts, Name: "server-1"}, record)
	return record, err
}

// until waits for something that the manager and the server do.
func (s *site) until(what string, check func() error) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if exited, err := s.env.Manager.Exited(); exited {
			s.t.Fatalf("the manager ended: %v: %s", err, endOf(filepath.Join(s.env.Dir, "manager.log"), 2<<10))
		}
		if err = check(); err == nil {
			s.t.Logf("%6.1fs %s", time.Since(s.began).Seconds(), what)
			return
		}
	}
	s.t.Fatalf("%s: not within %s; last seen: %v", what, patience, err)
}

// await waits until the HostRecord is as it should be, and logs each step of an attempt with the seconds since the start.
func (s *site) await(what string, ok func(*v1alpha1.HostRecord) bool) *v1alpha1.HostRecord {
	s.t.Helper()
	var record *v1alpha1.HostRecord
	seen := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		var err error
		if exited, err := s.env.Manager.Exited(); exited {
			s.t.Fatalf("the manager ended: %v: %s", err, endOf(filepath.Join(s.env.Dir, "manager.log"), 2<<10))
		}
		if record, err = s.record(); err != nil {
			continue // The host controller makes it.
		}
		if now := stateOf(record); now != seen {
			seen = now
			s.t.Logf("%6.1fs %s", time.Since(s.began).Seconds(), now)
		}
		if ok(record) {
			return record
		}
	}
	s.t.Fatalf("%s: not within %s; last seen: %s %+v", what, patience, seen, record.Status.Error)
	return nil
}

// stateOf says in a line what the host does.
func stateOf(record *v1alpha1.HostRecord) string {
	wanted, attempt := record.Status.Wanted, record.Status.Progress()
	if wanted == nil {
		return "nothing is wanted"
	}
	if attempt == nil {
		return fmt.Sprintf("attempt %d %s %s", wanted.Number, wanted.Operation, wanted.Outcome)
	}
	return fmt.Sprintf("attempt %d %s %s %s boot %d %s", wanted.Number, wanted.Operation, wanted.Outcome, attempt.Step, attempt.Boots, attempt.Reason)
}

// readDisk returns the first bytes of the server's disk as they are outside of the server.
func (s *site) readDisk(size int) []byte {
	s.t.Helper()
	f, err := os.Open(s.disk)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	out := make([]byte, size)
	if _, err := io.ReadFull(f, out); err != nil {
		s.t.Fatal(err)
	}
	return out
}
