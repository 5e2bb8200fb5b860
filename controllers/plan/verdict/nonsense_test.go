package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// nonsense changes slices at random: mostly a little, sometimes as only a broken or malicious driver would.
func mutateSlices(r *rand.Rand, in *Input) {
	if len(in.Slices) == 0 || r.IntN(8) == 0 {
		in.Slices = append(in.Slices, slice(fmt.Sprintf("s-%d", r.Uint64()), int64(r.IntN(3)+2), int64(r.IntN(3)), 0, r.IntN(9)))
		return
	}
	s := &in.Slices[r.IntN(len(in.Slices))]
	long := strings.Repeat("\xff<é", 1+r.IntN(400))
	changes := []func(){
		func() { s.Spec.Pool.Generation = []int64{math.MinInt64, -1, 0, 2, 3, 4, math.MaxInt64}[r.IntN(7)] },
		func() {
			s.Spec.Pool.ResourceSliceCount = []int64{math.MinInt64, 0, 1, 1, 1, 2, math.MaxInt64}[r.IntN(7)]
		},
		func() { s.Spec.Pool.Name = []string{"n", "n", "", "m", long}[r.IntN(5)] },
		func() { s.Spec.NodeName = []*string{nil, ptr.To("n"), ptr.To("n"), ptr.To(""), ptr.To("m")}[r.IntN(5)] },
		func() { s.Spec.Driver = []string{draDriver, draDriver, "", "x", long}[r.IntN(5)] },
		func() { s.OwnerReferences[0].UID = []types.UID{"node-1", "node-1", "node-0", ""}[r.IntN(4)] },
		func() { s.Spec.Devices = slice("", 0, 0, r.IntN(3), r.IntN(10)).Spec.Devices },
		func() { s.Spec.Devices = slice("", 0, 0, 0, 8).Spec.Devices },
		func() {
			in.Slices = append(in.Slices, *s.DeepCopy())
			in.Slices[len(in.Slices)-1].Name = fmt.Sprint(r.Uint64())
		},
		func() { in.Slices = slices.Delete(in.Slices, 0, 1) },
	}
	if len(s.Spec.Devices) > 0 {
		d := &s.Spec.Devices[r.IntN(len(s.Spec.Devices))]
		changes = append(changes,
			func() { d.Name = []string{"gpu-0", "", long}[r.IntN(3)] },
			func() { d.Attributes, d.Capacity = nil, nil },
			func() { d.NodeName = ptr.To([]string{"n", "m"}[r.IntN(2)]) },
			func() { d.Taints = []resourcev1.DeviceTaint{{Key: long, Effect: resourcev1.DeviceTaintEffect(long)}} },
			func() {
				d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {}, "": {StringValue: &long}, "//": {},
					"driverVersion": {VersionValue: ptr.To("v.."), IntValues: []int64{1}, BoolValues: []bool{true}, BoolValue: ptr.To(false), VersionValues: []string{""}}}
			},
		)
	}
	changes[r.IntN(len(changes))]()
}

// right is the promise, said in another way: there is one newest generation, it is complete, and has the eight GPUs.
func isAsExpected(in Input) bool {
	newest := int64(math.MinInt64)
	for _, s := range in.Slices {
		if s.Spec.Driver == draDriver && s.Spec.Pool.Name == "n" && s.OwnerReferences[0].UID == in.Node.UID {
			newest = max(newest, s.Spec.Pool.Generation)
		}
	}
	members, gpus := int64(0), map[string]bool{}
	for _, s := range in.Slices {
		if s.Spec.Driver != draDriver || s.Spec.Pool.Name != "n" || s.Spec.Pool.Generation != newest {
			continue
		}
		members++
		for _, d := range s.Spec.Devices {
			here := (s.Spec.NodeName == nil || *s.Spec.NodeName == "n") && (d.NodeName == nil || *d.NodeName == "n")
			if a := d.Attributes["productName"]; here && len(d.Taints) == 0 && a.StringValue != nil {
				gpus[d.Name] = true
			}
		}
	}
	for _, s := range in.Slices {
		if s.Spec.Driver == draDriver && s.Spec.Pool.Name == "n" && s.Spec.Pool.Generation == newest && s.Spec.Pool.ResourceSliceCount != members {
			return false
		}
	}
	return len(gpus) == 8
}

// Slices are written by others: whatever they hold, the verdict is a decision, the same each time, of bounded size, and
// passes only for what was promised. Pools of other names that are complete may take part, so they are left out of what
// must be right.
func TestNoNonsenseInSlicesBreaksTheVerdict(t *testing.T) {
	passed := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		in := perfectDRAInput()
		for step := range 12 {
			mutateSlices(r, &in)
			before := make([]resourcev1.ResourceSlice, len(in.Slices))
			for i := range in.Slices {
				before[i] = *in.Slices[i].DeepCopy()
			}
			d := Judge(in)
			if text := fmt.Sprint(d); len(text) > 16<<10 {
				t.Fatalf("seed %d, step %d: the decision has %d bytes", seed, step, len(text))
			}
			names := map[string]bool{}
			for _, c := range d.Verdict.Checks {
				if names[c.Name] {
					t.Fatalf("seed %d, step %d: two checks are named %s", seed, step, c.Name)
				}
				names[c.Name] = true
			}
			if d.Verdict.Result == v1alpha1.CheckPass {
				passed++
				if others := slices.ContainsFunc(in.Slices, func(s resourcev1.ResourceSlice) bool { return s.Spec.Pool.Name != "n" }); !others && !isAsExpected(in) {
					t.Fatalf("seed %d, step %d: it passes with %+v", seed, step, in.Slices)
				}
			}
			if !equality.Semantic.DeepEqual(before, in.Slices) {
				t.Fatalf("seed %d, step %d: Judge changed the cache's slices: %s", seed, step, cmp.Diff(before, in.Slices))
			}
			slices.Reverse(in.Slices)
			if again := Judge(in); !equality.Semantic.DeepEqual(d, again) {
				t.Fatalf("seed %d, step %d: the order of the slices matters: %s", seed, step, cmp.Diff(d, again))
			}
		}
	}
	if passed < 100 {
		t.Errorf("only %d of the random nodes pass: the test shows nothing", passed)
	}
}

func TestWhatATenantPublishesDoesNotSwellTheVerdict(t *testing.T) {
	in := perfectDRAInput()
	for i := range 3000 {
		s := slice(fmt.Sprintf("s-%d", i), int64(i%7), 1, 0, 8)
		s.Spec.Pool.Name, s.Spec.Driver = fmt.Sprintf("p-%d", i), []string{draDriver, fmt.Sprintf("d-%d", i)}[i%2]
		in.Slices = append(in.Slices, s)
	}
	selectBy(&in, "device.attributes[device.driver].uuid.matches('(a|b|GPU)+.*[0-9]')")
	d := Judge(in)
	if text := fmt.Sprint(d); len(text) > 16<<10 || d.Verdict.Result != v1alpha1.CheckFail {
		t.Errorf("the decision %s has %d bytes", d.Verdict.Result, len(text))
	}
}

func TestSelectorsThatCostTooMuchAreGivenUp(t *testing.T) {
	one := device{driver: draDriver, Device: &slice("s", 1, 1, 0, 1).Spec.Devices[0]}
	selectors := Compile(class("[1, 2, 3].all(a, a > 0)", "[1, 2].all(a, a > 0)"))
	_, first, err := Compile(class("[1, 2, 3].all(a, a > 0)")).matches(one)
	if err != nil {
		t.Fatal(err)
	}
	ok, cost, err := selectors.matches(one)
	if !ok || cost <= first || first == 0 || err != nil {
		t.Fatalf("both selectors cost %d, the first %d; selected %t, error %v", cost, first, ok, err)
	}
	for _, c := range []struct {
		name    string
		maxCost uint64
		want    string
	}{
		{"the cost of four devices is enough for four", 4 * cost, "4, <nil>"},
		{"one less is not", 4*cost - 1, "0, its selectors cost too much to evaluate on 4 devices"},
		{"the cost of one device is not enough for four", cost, "0, its selectors cost too much to evaluate on 4 devices"},
	} {
		n, err := selectors.count([]device{one, one, one, one}, c.maxCost)
		if got := fmt.Sprintf("%d, %v", n, err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzWhateverADeviceClassSelects(f *testing.F) {
	for _, e := range []string{draSelector, "true", "device", "device.attributes", "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('1Gi'))",
		"device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('1.0.0')) > 0", "cel.bind(a, device.attributes['gpu.nvidia.com'], a.type == 'gpu')", "[1,2", "\x00", "1/0 == 1"} {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		in := perfectDRAInput()
		selectBy(&in, expression)
		d := Judge(in)
		if c := find(t, d, "deviceclass/gpu.nvidia.com"); c.Result == v1alpha1.CheckPass && c.Observed != "8" || len(c.Observed) > 2*maxText {
			t.Errorf("%+v", c)
		}
	})
}

// setPendingLabel lets the software that sets a label say that it still works.
func setPendingLabel(in *Input) {
	l := &in.Expectation.Labels[0]
	l.Passing, in.Node.Labels[l.Key] = []string{"pending"}, "pending"
}

func TestAVerdictHasSixteenForeignResourcesAtMost(t *testing.T) {
	for _, c := range []struct{ resources, checks int }{{15, 15}, {16, 16}, {17, 16}, {100, 16}} {
		in := perfectInput()
		for i := range c.resources {
			in.Node.Status.Capacity[corev1.ResourceName(fmt.Sprintf("nvidia.com/mig-a%03d", i))] = resource.MustParse("0")
		}
		n := 0
		for _, check := range Judge(in).Verdict.Checks {
			if strings.HasPrefix(check.Name, PrefixForeign) {
				n++
			}
		}
		if n != c.checks {
			t.Errorf("%d foreign resources give %d checks, want %d", c.resources, n, c.checks)
		}
	}
}
