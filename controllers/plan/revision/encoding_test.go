package revision

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew; only for an encoding that no release has")

// fill sets every field below v to a value that is not its default: texts to the name of their field, numbers to 7.
func fill(v reflect.Value, name string) {
	if raw, ok := v.Addr().Interface().(*runtime.RawExtension); ok {
		raw.Raw = []byte(`{"kind": "KubeletConfiguration", "maxPods": 64, "kubeReserved": {"memory": "8Gi", "cpu": "1"}, "nodeLeaseDurationSeconds": 40}`)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Map:
		key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, name+" key")
		fill(item, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, item)
	case reflect.String:
		v.SetString(name)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	}
}

// TestTheCanonicalFormNeverChanges compares the canonical form of a revision that has every field with a golden file. A name or a
// number in it that changes would roll every fleet that uses the field.
func TestTheCanonicalFormNeverChanges(t *testing.T) {
	var spec v1alpha1.NodeTypeRevisionSpec
	fill(reflect.ValueOf(&spec).Elem(), "")
	got, err := json.MarshalIndent(encodeV1(spec), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/encoding-1.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("the canonical form is\n%s\nwant\n%s", got, want)
	}
}

func TestMembersWithoutContentLeaveNoTrace(t *testing.T) {
	for name, gpu := range map[string]*v1alpha1.GPUSpec{
		"no GPUs":          nil,
		"nothing said":     {},
		"empty members":    {Generic: &v1alpha1.GenericSpec{}, Presentation: v1alpha1.Presentation{Passthrough: &v1alpha1.PassthroughSpec{}, VGPU: &v1alpha1.VGPUSpec{}, MIG: &v1alpha1.MIGSpec{}, DRA: &v1alpha1.DRASpec{}, Partitions: &v1alpha1.PartitionSpec{}}},
		"empty in members": {Generic: &v1alpha1.GenericSpec{DRA: &v1alpha1.GenericDRA{}, ResourcesPerDevice: 1}, Presentation: v1alpha1.Presentation{Passthrough: &v1alpha1.PassthroughSpec{Sharing: &v1alpha1.SharingSpec{}}, VGPU: &v1alpha1.VGPUSpec{Licence: &v1alpha1.VGPULicence{}}}},
	} {
		if form := gpuV1(gpu); len(form) != 0 || form == nil {
			t.Errorf("%s: %v", name, form)
		}
	}
	form := object{}
	form.setLayout([]v1alpha1.MIGLayout{{GPUs: []int32{3}}, {}})
	if text, _ := json.Marshal(form); string(text) != `{"layout":[{"gpus":[3]},{}]}` {
		t.Errorf("layout %s", text)
	}
}

func TestARevisionHasTwoLayersOrNone(t *testing.T) {
	in := inputs()
	in.NodeType.Spec.UserData, in.Image.Spec.UserData = "", ""
	spec, err := Build(in)
	if err != nil || spec.UserData != nil || spec.Properties != nil || spec.Image.UserData != v1alpha1.UserDataCloudInit {
		t.Errorf("user data %q, properties %v, kind %s (%v)", spec.UserData, spec.Properties, spec.Image.UserData, err)
	}
	in.Provider.Spec.UserData, in.Provider.Spec.Properties = "#cloud-config\n", map[string]string{"vlan": "100"}
	in.Provider.Spec.SSHKeys = in.NodeType.Spec.SSHKeys
	spec, err = Build(in)
	if want := []map[string]string{{"vlan": "100"}, {}}; err != nil || !reflect.DeepEqual(spec.UserData, []string{"#cloud-config\n", ""}) || !reflect.DeepEqual(spec.Properties, want) {
		t.Errorf("user data %q, properties %v (%v)", spec.UserData, spec.Properties, err)
	}
	if len(spec.SSHKeys) != 1 {
		t.Errorf("a key of both objects is twice in %q", spec.SSHKeys)
	}
}

func TestADigestOfANewerEncodingIsRefused(t *testing.T) {
	if digest, err := Digest(v1alpha1.NodeTypeRevisionSpec{HashVersion: HashVersion + 1}); err == nil || digest != "" || !strings.Contains(err.Error(), "hash version 2") {
		t.Errorf("digest %q (%v)", digest, err)
	}
}

func TestANodeTypeIsNotRestoredWithoutAPinnedImage(t *testing.T) {
	in := inputs()
	spec, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Image.Status.Checksum = ""
	var unpinned *UnpinnedError
	if _, err := Restore(in, &v1alpha1.NodeTypeRevision{Spec: spec}); !errors.As(err, &unpinned) {
		t.Errorf("error %v", err)
	}
}

func TestANodeTypesNameIsCutOnlyWhenItMust(t *testing.T) {
	longest := strings.Repeat("a", maxName-digestDigits-1)
	if name := Name(longest, golden); name != longest+"-"+golden[:10] {
		t.Errorf("name %s", name)
	}
}
