package nodeidentity

import (
	"strings"
	"testing"
)

const server, other = "4c4c4544-0042-3010-8053-b8c04f334432", "4c4c4544-0042-3010-8053-b8c04f334433"

func TestOwnersOfANode(t *testing.T) {
	ours := Claim{MachineUID: "m", Attempt: 2, SystemUUID: server}
	cluster := ours
	cluster.ByCluster = true
	node := Node{UID: "n", SystemUUID: strings.ToUpper(server), Installation: "m.2"}
	with := func(change func(*Claim, *Node)) (Claim, Node) {
		c, n := cluster, node
		change(&c, &n)
		return c, n
	}
	for _, c := range []struct {
		name   string
		change func(*Claim, *Node)
		want   Owner
		says   string
	}{
		{"by server and label", func(*Claim, *Node) {}, ThisAttempt, ""},
		{"whatever the cloud provider calls it", func(_ *Claim, n *Node) { n.ProviderID = "vcluster://m0" }, ThisAttempt, ""},
		{"an earlier attempt by its label", func(_ *Claim, n *Node) { n.Installation = "m.1" }, EarlierAttempt, `"m.1"`},
		{"an earlier Machine of the server", func(_ *Claim, n *Node) { n.Installation = "mm.2" }, EarlierAttempt, "m.2"},
		{"a label with a line break", func(_ *Claim, n *Node) { n.Installation = "m\n2" }, EarlierAttempt, `"m 2"`},
		{"another server", func(_ *Claim, n *Node) { n.SystemUUID = other }, Another, other},
		{"with the bytes in another order", func(_ *Claim, n *Node) { n.SystemUUID = "44454c4c-4200-1030-8053-b8c04f334432" }, Another, "44454c4c"},
		{"no UUID of kubelet", func(_ *Claim, n *Node) { n.SystemUUID = "" }, Unknown, "identifies no server"},
		{"no UUID of the agent", func(c *Claim, _ *Node) { c.SystemUUID = "" }, Unknown, "inspected"},
		{"a UUID that many have", func(c *Claim, n *Node) {
			c.SystemUUID = "03000200-0400-0500-0006-000700080009"
			n.SystemUUID = c.SystemUUID
		}, Unknown, "03000200"},
		{"no label", func(_ *Claim, n *Node) { n.Installation = "" }, SameServer, "INGOT_NODE_LABELS"},
		{"the Node that it is bound to", func(c *Claim, n *Node) { c.NodeUID, c.SystemUUID, n.Installation = "n", "", "" }, ThisAttempt, ""},
		{"an installation with a providerID", func(_ *Claim, n *Node) { n.ProviderID = "ingot://m/2" }, ThisAttempt, ""},
		{"an earlier one", func(_ *Claim, n *Node) { n.ProviderID = "ingot://m/1" }, EarlierAttempt, "ingot://m/2"},
		{"another Machine's, though bound", func(c *Claim, n *Node) { n.ProviderID, c.NodeUID = "ingot://mm/2", "n" }, Another, "ingot://mm/2"},
		{"without leave, the cloud's", func(c *Claim, n *Node) { c.ByCluster, n.ProviderID = false, "aws://\n1" }, Another, `aws:// 1`},
		{"without leave, none", func(c *Claim, _ *Node) { c.ByCluster = false }, Another, "spec.join.providerID"},
		{"without leave, bound before", func(c *Claim, n *Node) { c.ByCluster, c.NodeUID, n.ProviderID = false, "n", "vcluster://m0" }, ThisAttempt, ""},
	} {
		claim, node := with(c.change)
		if got := Of(claim, node); got.Owner != c.want || !strings.Contains(got.Message, c.says) || (got.Message == "") != (c.want == ThisAttempt) {
			t.Errorf("%s: %+v, expected %s with %q", c.name, got, c.want, c.says)
		}
	}
}

func TestOwnersThatAreTheMachines(t *testing.T) {
	for owner, want := range map[Owner]bool{ThisAttempt: true, EarlierAttempt: true, SameServer: true, Another: false, Unknown: false} {
		if owner.IsMachines() != want {
			t.Errorf("%s", owner)
		}
	}
}

func TestKubeletIsToldItsProviderIDUnlessTheClusterSetsIt(t *testing.T) {
	c := Claim{MachineUID: "m", Attempt: 3}
	if got := c.ProviderID(); got != "ingot://m/3" {
		t.Error(got)
	}
	if c.ByCluster = true; c.ProviderID() != "" {
		t.Error(c.ProviderID())
	}
}

func TestAttemptsInProviderIDs(t *testing.T) {
	for text, want := range map[string]int64{"ingot://m/7": 7, "ingot://mm/7": 0, "ingot://m/x": 0, "vcluster://m/7": 0, "": 0} {
		if got := AttemptOf(text, "m"); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestAnInstallationOfTheMachineRegisteredTheNode(t *testing.T) {
	for _, c := range []struct {
		name string
		node Node
		want bool
	}{
		{"by its label", Node{ProviderID: "vcluster://m0", Installation: "m.7"}, true},
		{"by its providerID", Node{ProviderID: "ingot://m/7"}, true},
		{"another Machine's label", Node{Installation: "mm.7"}, false},
		{"a label beside another Machine's providerID", Node{ProviderID: "ingot://b/1", Installation: "m.7"}, false},
		{"neither", Node{SystemUUID: server}, false},
	} {
		if got := IsOfMachine(c.node, "m"); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
