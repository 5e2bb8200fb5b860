package tenantaccess

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func weigh(text string, perValue bool) *meter {
	m := &meter{}
	// In pieces, as it arrives.
	for len(text) > 0 {
		n := min(7, len(text))
		m.add([]byte(text[:n]), perValue)
		text = text[n:]
	}
	return m
}

func TestAnEmptyObjectWeighsMoreThanItsText(t *testing.T) {
	many := weigh(`{"items":[`+strings.Repeat("{},", 999)+`{}]}`, false)
	if many.weight < 1000*objectCost || many.depth != 0 {
		t.Errorf("a thousand empty objects weigh %d, depth %d", many.weight, many.depth)
	}
	if text := weigh(`"`+strings.Repeat(`{[,\"`, 1000)+`"`, false); text.weight != 5002 {
		t.Errorf("a text weighs %d", text.weight)
	}
}

func TestManagedFieldsWeighTheirText(t *testing.T) {
	inner := strings.Repeat(`{"f:x":{},`, 100) + `"f:y":{}` + strings.Repeat("}", 100)
	fields := weigh(`{"fieldsV1":`+inner+`,"a":{}}`, false)
	if limit := int64(len(inner)) + 3*objectCost; fields.weight > limit {
		t.Errorf("managed fields weigh %d, more than %d", fields.weight, limit)
	}
	if hidden := weigh(`["fieldsV1",`+inner+`]`, false); hidden.weight < 100*objectCost {
		t.Error("what only looks like managed fields is not counted")
	}
}

func TestEachEventIsWeighedAlone(t *testing.T) {
	event := `{"type":"ADDED","object":{}}`
	if m := weigh(strings.Repeat(event+"\n", 1000), true); m.heaviest > 2*objectCost+100 || m.depth != 0 {
		t.Errorf("the heaviest of small events weighs %d", m.heaviest)
	}
	if m := weigh(event+`{"object":"`+strings.Repeat("x", 9000), true); m.heaviest < 9000 {
		t.Errorf("an event without an end weighs %d", m.heaviest)
	}
}

// TestTheEstimatesAreNotFarFromTheTruth compares them with the memory that decoded Nodes take.
func TestTheEstimatesAreNotFarFromTheTruth(t *testing.T) {
	const count = 500
	text, err := json.Marshal(bigNode(150))
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		nodes[i] = &corev1.Node{}
		if err := json.Unmarshal(text, nodes[i]); err != nil {
			t.Fatal(err)
		}
	}
	truth := (heap() - before) / count
	size, weight := footprint(nodes[0])-entryOverhead, weigh(string(text), false).weight
	runtime.KeepAlive(nodes)
	if size < truth*6/10 || size > truth*2 || weight < truth*6/10 {
		t.Errorf("a Node takes %d bytes; counted %d, estimated on arrival %d", truth, size, weight)
	}
}

func bigNode(labels int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}, Annotations: map[string]string{}}}
	node.Status.Capacity = corev1.ResourceList{}
	for i := range labels {
		node.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-%d", i)] = "true"
		node.Annotations[fmt.Sprintf("example.com/a-%d", i)] = strings.Repeat("x", 100)
		node.Status.Capacity[corev1.ResourceName(fmt.Sprintf("example.com/r-%d", i))] = resource.MustParse("1")
	}
	return node
}

func TestANodeKeepsWhatIsReadAndItsSizeIsLimited(t *testing.T) {
	node := bigNode(5000)
	node.Labels[v1alpha1.LabelMachine], node.Labels["zz/long"] = "uid", strings.Repeat("x", 64)
	node.Annotations[v1alpha1.AnnotationCordoned], node.Annotations[v1alpha1.AnnotationGateCordoned] = "true", "true"
	node.Status.Capacity["zz"], node.Status.NodeInfo.BootID = resource.MustParse("2"), strings.Repeat("b", 1<<20)
	node.Spec.Taints = make([]corev1.Taint, 5000)
	kept := trimNode(node)
	if len(kept.Labels) != maxLabels || kept.Labels[v1alpha1.LabelMachine] != "uid" || kept.Labels["zz/long"] != "" {
		t.Errorf("%d labels", len(kept.Labels))
	}
	if zz := kept.Status.Capacity["zz"]; len(kept.Status.Capacity) != maxResources || zz.Value() != 2 {
		t.Errorf("%d resources", len(kept.Status.Capacity))
	}
	if len(kept.Annotations) != 2 || len(kept.Spec.Taints) != maxTaints || len(kept.Status.NodeInfo.BootID) > maxText {
		t.Errorf("%d annotations, %d taints", len(kept.Annotations), len(kept.Spec.Taints))
	}
	if size := footprint(kept); size > 128<<10 {
		t.Errorf("the Node still takes %d bytes", size)
	}
}

func TestOnlyTheLargerOfTheOldAndTheNewListCounts(t *testing.T) {
	l := &ledger{account: &account{budget: 100, kept: map[string]int64{}}, plural: "Nodes", sizes: map[string]int64{}}
	put := func(name string, size int64) {
		t.Helper()
		if err := l.put(name, size); err != nil {
			t.Fatal(err)
		}
	}
	put("a", 60)
	put("a", 80)
	l.begin()
	put("b", 90)
	if err := l.put("c", 11); tooLarge(err) == nil {
		t.Error("a list above the budget is kept")
	}
	l.drop("c")
	if err := l.commit(); err != nil || l.account.kept["Nodes"] != 90 {
		t.Errorf("%d are kept: %v", l.account.kept["Nodes"], err)
	}
	if tooLarge(l.put("d", maxKeptObject+1)) == nil {
		t.Error("one object has no limit")
	}
	l.close()
	put("late", 50)
	if len(l.account.kept) != 0 {
		t.Error("what a stopped watch still sends is counted")
	}
}
