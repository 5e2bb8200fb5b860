package firstrack

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/insomniacslk/dhcp/iana"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

func TestTheDocumentOfTheFirstRackLeadsToAReadyNode(t *testing.T) {
	doc, err := readDocument("../../config/first-rack.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.makeImage(doc["1. Programs and image"])
	s.install(doc["2. Settings"])
	s.register(doc["3. Servers"])
	s.answersDHCP()
	s.order(doc["4. Image, tenant, nodes"])
	s.waitForNode()
	s.leakNothing()
	s.loseTheNodeWithTheAddress()
}

// makeImage runs the commands where the sources are. The configuration is changed in a copy.
func (s *site) makeImage(c section) {
	root, err := filepath.Abs("../..")
	if err != nil {
		s.t.Fatal(err)
	}
	s.sh("cd " + root + "\n" + c.commands[0])
	s.sh("cp -r " + filepath.Join(root, "config") + " config")
}

// edit changes a file of the configuration.
func (s *site) edit(path string, edit func(string) string) {
	s.t.Helper()
	path = filepath.Join(s.work, path)
	before, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	after := edit(string(before))
	if after == string(before) {
		s.t.Fatalf("%s: nothing to change", path)
	}
	s.write(path, after)
}

func (s *site) write(path, content string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// install changes what the section says in words, and runs its commands.
func (s *site) install(c section) {
	s.edit("config/boot/config.yaml", func(text string) string {
		before, _, _ := strings.Cut(text, "  # DHCP, TFTP and router")
		return before + c.settings[0]
	})
	s.edit("config/manager/config.yaml", func(text string) string {
		// The tenant's API server is in this process.
		return text + strings.Replace(c.settings[1], "10.40.0.0/16", router+"/32", 1)
	})
	s.edit("config/default/kustomization.yaml", func(text string) string {
		text = strings.Replace(text, "components:\n", "components:\n- ../provisioning\n", 1)
		return strings.Replace(text, "  newTag: v0.1.0", "  newName: registry.example.com/ingot-manager\n  newTag: v1", 1)
	})
	s.write(filepath.Join(s.work, "bmc-ca.crt"), string(s.env.Rack.CA()))
	s.sh(c.commands[0])
}

func (s *site) register(c section) {
	s.write(filepath.Join(s.work, "bmc-password"), bmcPassword+"\n")
	s.sh(c.commands[0])
	s.sh("kubectl -n metal wait --for=jsonpath='{.status.provisioning.state}'=available baremetalhosts --all --timeout=180s")
	if out := s.sh("kubectl get nodeprovider"); !strings.Contains(out, "True") {
		s.t.Errorf("the NodeProvider is not ready:\n%s", out)
	}
}

// answersDHCP asks the pods as the server's firmware does.
func (s *site) answersDHCP() {
	mac, err := net.ParseMAC(s.env.Rack.Server(serverName).BootMAC())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := lab.AddMachine("firmware", mac); err != nil {
		s.t.Fatal(err)
	}
	c, err := nclient4.New("firmware", nclient4.WithTimeout(2*time.Second), nclient4.WithRetry(5))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	offer, err := c.DiscoverOffer(s.t.Context(), dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64)))
	if err != nil {
		s.t.Fatalf("no DHCP offer: %v", err)
	}
	if offer.BootFileNameOption() != "snponly.efi" || !strings.HasPrefix(offer.YourIPAddr.String(), "10.20.1.") {
		s.t.Errorf("the offer is %s", offer.Summary())
	}
}

// order packs the image and orders the nodes. This image server has no certificate that a pod with the usual roots would accept.
func (s *site) order(c section) {
	if err := environment.WriteTree(filepath.Join(s.work, "rootfs"), 1<<20); err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join(s.work, "admin.kubeconfig"), string(s.env.Tenant.Kubeconfig()))
	var err error
	if s.watch, err = invariants.Start(s.ctx, s.env.ManagementClient, s.env.TenantClient, gateKey); err != nil {
		s.t.Fatal(err)
	}
	s.sh(strings.ReplaceAll(c.commands[0], "https://images.example.com", "http://images.example.com"))
}

// waitForNode waits until a Machine is ready, and checks the invariants meanwhile.
func (s *site) waitForNode() {
	var seen string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		if err := s.watch.Check(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		var machines v1alpha1.MachineList
		if err := s.env.ManagementClient.List(s.t.Context(), &machines, client.InNamespace("research")); err != nil {
			s.t.Fatal(err)
		}
		seen = ""
		for _, m := range machines.Items {
			if m.Status.Phase == v1alpha1.MachineReady {
				s.checkNode(m.Name)
				return
			}
			seen += fmt.Sprintf("%s %s\n", m.Name, m.Status.Phase)
		}
	}
	s.t.Fatalf("no Machine is ready within %s:\n%s%s", patience, seen, s.sh("ingot machines; ingot hosts"))
}

// checkNode checks the node of a Machine that is ready.
func (s *site) checkNode(name string) {
	s.t.Helper()
	var node corev1.Node
	if err := s.env.TenantClient.Get(s.t.Context(), client.ObjectKey{Name: name}, &node); err != nil {
		s.t.Fatal(err)
	}
	if gpus := node.Status.Allocatable["nvidia.com/gpu"]; gpus.Value() != 8 {
		s.t.Errorf("the node has %s GPUs", gpus.String())
	}
	if usable, all := node.Status.Allocatable.Cpu(), node.Status.Capacity.Cpu(); usable.Cmp(*all) >= 0 {
		s.t.Errorf("kubelet reserves nothing by default: of %s CPUs pods can have %s", all.String(), usable.String())
	}
	violations, err := s.watch.Violations()
	if err != nil || len(violations) > 0 {
		s.t.Errorf("%v %v", violations, err)
	}
}

// leakNothing looks for the BMC's password in what the pods wrote and in the API.
func (s *site) leakNothing() {
	texts := map[string][]byte{}
	logs, err := filepath.Glob(filepath.Join(s.env.Dir, "node-*", "pods", "*", "*", "*.log"))
	if err != nil || len(logs) < 2 {
		s.t.Fatalf("the pods' logs: %v %v", logs, err)
	}
	for _, path := range logs {
		if texts[path], err = os.ReadFile(path); err != nil {
			s.t.Fatal(err)
		}
	}
	leaks, err := invariants.Leaks(s.t.Context(), s.env.ManagementClient, s.env.Secrets, texts)
	if err != nil || len(leaks) > 0 {
		s.t.Errorf("%v %v", leaks, err)
	}
}

// loseTheNodeWithTheAddress cuts the power of the node that has the boot service's address: the other one takes it.
func (s *site) loseTheNodeWithTheAddress() {
	if err := s.askBootService(); err != nil {
		s.t.Fatal(err)
	}
	var lease coordinationv1.Lease
	if err := s.env.ManagementClient.Get(s.t.Context(), client.ObjectKey{Namespace: "ingot-boot", Name: "ingot-boot-address"}, &lease); err != nil {
		s.t.Fatal(err)
	}
	holder, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	lost := 0
	for _, n := range s.nodes {
		if n.Name() == holder {
			lost++
			if err := n.Stop(); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if lost != 1 {
		s.t.Fatalf("the address belongs to %s, which is no node", *lease.Spec.HolderIdentity)
	}
	if err := s.askBootService(); err == nil {
		s.t.Error("the boot service answers without the node that had its address")
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		err := s.askBootService()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the other node does not take the boot service's address: %v", err)
		}
	}
}

// askBootService asks for the ramdisk that servers boot.
func (s *site) askBootService() error {
	c := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := c.Head("http://" + bootAddress + "/files/initrd")
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the ramdisk: %s", response.Status)
	}
	return nil
}
