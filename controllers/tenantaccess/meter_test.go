package tenantaccess

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/apimachinery/pkg/runtime"
	jsonapi "k8s.io/apimachinery/pkg/util/json"

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

// countElements returns how many elements the arrays of a decoded value have.
func countElements(value any) (count int) {
	switch v := value.(type) {
	case []any:
		count += len(v)
		for _, part := range v {
			count += countElements(part)
		}
	case map[string]any:
		for _, part := range v {
			count += countElements(part)
		}
	}
	return count
}

// FuzzMeter: a text weighs the same in whatever pieces it arrives, never less than its bytes, and each element of an array has its cost.
func FuzzMeter(f *testing.F) {
	f.Add([]byte(`{"items":[{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}},{},null],"a\\u0062":[1,"]"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, bytewise := &meter{}, &meter{}
		whole.add(text, false)
		for _, c := range text {
			bytewise.add([]byte{c}, false)
		}
		if whole.weight != bytewise.weight || whole.depth != bytewise.depth || whole.weight < int64(len(text)) {
			t.Errorf("%q weighs %d, and byte by byte %d", text, whole.weight, bytewise.weight)
		}
		var value any
		if json.Unmarshal(text, &value) != nil || strings.Contains(string(text), fieldsKey) {
			return
		}
		if n := int64(countElements(value)); whole.depth != 0 || whole.weight < n*objectCost {
			t.Errorf("%q with %d elements weighs %d, depth %d", text, n, whole.weight, whole.depth)
		}
	})
}

func TestManagedFieldsWeighTheirText(t *testing.T) {
	inner := strings.Repeat(`{"f:x":{},`, 100) + `"f:y":{},"f:z":[null]` + strings.Repeat("}", 100)
	fields := weigh(`{"metadata":{"managedFields":[{"fieldsV1":`+inner+`,"manager":"a"}]}}`, false)
	if limit := int64(len(inner)) + 4*objectCost; fields.weight > limit || fields.depth != 0 || len(fields.levels) != 0 {
		t.Errorf("managed fields weigh %d, more than %d", fields.weight, limit)
	}
	for _, hidden := range []string{
		`["fieldsV1",` + inner + `]`, `{"fieldsV1":` + inner + `}`, `{"managedFields":[{"fieldsV1":` + inner + `}]}`,
		`{"metadata":{"fieldsV1":` + inner + `}}`, `{"metadata":{"managedFields":{"fieldsV1":` + inner + `}}}`,
		`{"metadata":{"managedFields":[{"x":{"fieldsV1":` + inner + `}}]}}`, `{"metadata":{"managedFields":[{"fieldsV1":{}}]},"a":` + inner + `}`,
	} {
		if weigh(hidden, false).weight < 100*objectCost {
			t.Errorf("what only looks like managed fields is not counted: %.60s", hidden)
		}
	}
}

// TestDecodedTextsTakeNoMoreThanTheyWeigh decodes texts that are small and become large, as the clients do.
func TestDecodedTextsTakeNoMoreThanTheyWeigh(t *testing.T) {
	for name, shape := range map[string]struct {
		into             runtimeapi.Object
		head, each, tail string
		count            int
	}{
		"null in place of Nodes":       {&corev1.NodeList{}, `{"items":[`, `null,`, `null]}`, 3000},
		"null in place of Pods":        {&corev1.PodList{}, `{"items":[`, `null,`, `null]}`, 3000},
		"null in place of DaemonSets":  {&appsv1.DaemonSetList{}, `{"items":[`, `null,`, `null]}`, 3000},
		"numbers in place of Pods":     {&corev1.PodList{}, `{"items":[`, `1,`, `1]}`, 3000},
		"texts in place of Pods":       {&corev1.PodList{}, `{"items":[`, `"",`, `""]}`, 3000},
		"lists in place of Pods":       {&corev1.PodList{}, `{"items":[`, `[],`, `[]]}`, 3000},
		"empty Pods":                   {&corev1.PodList{}, `{"items":[`, `{},`, `{}]}`, 3000},
		"a name with an escape":        {&corev1.PodList{}, `{"it\u0065ms":[`, `{},`, `{}]}`, 3000},
		"null in place of containers":  {&corev1.Pod{}, `{"spec":{"containers":[`, `null,`, `null]}}`, 3000},
		"null in place of volumes":     {&corev1.Pod{}, `{"spec":{"volumes":[`, `null,`, `null]}}`, 3000},
		"null in place of devices":     {&resourcev1.ResourceSlice{}, `{"spec":{"devices":[`, `null,`, `null]}}`, 3000},
		"quantities":                   {&resourcev1.ResourceSlice{}, `{"spec":{"devices":[{"capacity":{"fieldsV1":{"value":"1","requestPolicy":{"validValues":[`, `1,`, `1]}}}}]}}`, 20000},
		"attributes that are null":     {&resourcev1.ResourceSlice{}, `{"spec":{"devices":[{"attributes":{`, `"%d":null,`, `"a":null}}]}}`, 20000},
		"attributes that are numbers":  {&resourcev1.ResourceSlice{}, `{"spec":{"devices":[{"attributes":{`, `"%d":1,`, `"a":1}}]}}`, 20000},
		"capacities that are numbers":  {&resourcev1.ResourceSlice{}, `{"spec":{"devices":[{"capacity":{`, `"%d":1,`, `"a":1}}]}}`, 20000},
		"resources of a Node":          {&corev1.Node{}, `{"status":{"capacity":{`, `"%d":1,`, `"a":1}}}`, 20000},
		"labels":                       {&corev1.Node{}, `{"metadata":{"labels":{`, `"%d":"",`, `"a":""}}}`, 20000},
		"texts in place of finalizers": {&corev1.Node{}, `{"metadata":{"finalizers":[`, `"",`, `""]}}`, 20000},
		"null in managed fields":       {&corev1.Node{}, `{"metadata":{"managedFields":[`, `null,`, `null]}}`, 20000},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			text.WriteString(shape.head)
			for i := range shape.count {
				text.WriteString(strings.Replace(shape.each, "%d", fmt.Sprint(i), 1))
			}
			text.WriteString(shape.tail)
			raw := []byte(text.String())
			before, made := heap(), allocated()
			// An element of a wrong type is an error after all elements have been made.
			_ = jsonapi.Unmarshal(raw, shape.into)
			truth, made := heap()-before, allocated()-made
			runtime.KeepAlive(raw)
			runtime.KeepAlive(shape.into)
			weight := weigh(text.String(), false).weight
			if isDecoded := made > int64(shape.count)*8; truth > 2*weight || !isDecoded {
				t.Errorf("%d bytes of text weigh %d and take %d of the %d that were allocated", len(raw), weight, truth, made)
			}
		})
	}
}

func TestEachEventIsWeighedAlone(t *testing.T) {
	event := `{"type":"ADDED","object":{}}`
	if m := weigh(strings.Repeat(event+"\n", 1000), true); m.heaviest > 2*objectCost+fieldCost+100 || m.depth != 0 {
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

// allocated returns how many bytes were ever allocated.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
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
	node.Finalizers = append([]string{"example.com/kept"}, make([]string, 5000)...)
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
	if len(kept.Finalizers) != maxFinalizers || kept.Finalizers[0] != "example.com/kept" {
		t.Errorf("the finalizers that keep the Node: %q", kept.Finalizers)
	}
	if size := footprint(kept); size > 128<<10 {
		t.Errorf("the Node still takes %d bytes", size)
	}
}

func TestOnlyTheLargerOfTheOldAndTheNewListCounts(t *testing.T) {
	l := &ledger{account: newBook(100, 0).open("t", nil), plural: "Nodes", sizes: map[string]int64{}}
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
