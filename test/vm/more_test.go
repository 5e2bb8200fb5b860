package vm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
	"github.com/ingot-dev/ingot/test/vm/qemu"
)

// TestANodeIsRolledInPlace changes the user data of a NodeType, after which the same server is installed again for the same Machine.
func TestANodeIsRolledInPlace(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{isForNodes: true})
	s.apply(devicePlugin())
	s.order("node-1", nodeTypeOfNodes)
	before := s.awaitNode("node-1", s.awaitPowerOn())
	attempt, err := s.record()
	if err != nil {
		t.Fatal(err)
	}

	nodeType := &v1alpha1.NodeType{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: nodeTypeOfNodes}, nodeType); err != nil {
		t.Fatal(err)
	}
	changed := nodeType.DeepCopy()
	changed.Spec.UserData += "- [touch, /etc/rolled]\n"
	if err := s.client.Patch(t.Context(), changed, client.MergeFrom(nodeType)); err != nil {
		t.Fatal(err)
	}
	s.await("the rollout installs the server", func(r *v1alpha1.HostRecord) bool {
		return isOf(r, hardware.OpInstall) && r.Status.Wanted.Number > attempt.Status.Wanted.Number
	})
	after := s.awaitNode("node-1", s.awaitPowerOn())
	if before.UID == after.UID || before.Status.NodeInfo.BootID == after.Status.NodeInfo.BootID || !strings.HasSuffix(after.Spec.ProviderID, "/2") {
		t.Errorf("the node before the roll: %s %s; after it: %s %s", before.UID, before.Spec.ProviderID, after.UID, after.Spec.ProviderID)
	}
	if after.Status.NodeInfo.SystemUUID != before.Status.NodeInfo.SystemUUID {
		t.Error("the node is on another server")
	}
}

// strangerMAC is that of a server that nobody has registered.
const strangerMAC = "52:54:00:aa:00:99"

// TestAStrangerIsListedAndNotAnswered boots a server that nobody has registered from the network, beside one that is installed.
func TestAStrangerIsListedAndNotAnswered(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{})
	stranger, err := qemu.New(qemu.Options{
		Name: "stranger", Dir: s.env.Dir, FirmwareCode: firmwareCode, FirmwareVars: firmwareVars, MemoryMiB: 512,
		UUID: "13121110-1514-1716-1819-1a1b1c1d1e1f", MAC: strangerMAC, Tap: "tap1",
		NextBoot: func() hardware.BootSource { return hardware.BootNetwork },
	})
	if err := errors.Join(err, lab.AddTap("tap1")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.Close)
	stranger.Reset("On")
	s.until("the stranger's firmware gives up", func() error {
		console, err := os.ReadFile(stranger.Console())
		if strings.Contains(string(console), "iPXE") {
			t.Fatal("the stranger was given a boot program")
		}
		if err == nil && !strings.Contains(string(console), "PXE-E18") { // EDK2: server response timeout
			err = errors.New(endOf(filepath.Join(s.env.Dir, "stranger-console.log"), 200))
		}
		return err
	})
	stranger.Close()
	s.installPlain()
	program, err := s.env.Program("ingot")
	if err != nil {
		t.Fatal(err)
	}
	s.until("the stranger is listed", func() error {
		list, err := exec.CommandContext(t.Context(), program, "hosts", "--strangers", "--kubeconfig", s.env.Management.KubeconfigPath()).CombinedOutput()
		if err == nil && !bytes.Contains(list, []byte(strangerMAC)) {
			err = fmt.Errorf("the list: %s", list)
		}
		return err
	})
}

// node returns the node of a Machine.
func (s *site) node(machine string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, s.env.TenantClient.Get(s.t.Context(), client.ObjectKey{Name: machine}, node)
}
