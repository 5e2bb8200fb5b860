package software

import (
	"strings"
	"testing"
)

func TestAnImageIsPulledFromTheMirrorOfTheLongestPath(t *testing.T) {
	m, err := ParseMirrors([]string{"nvcr.io=r.example.com/nvcr/", "nvcr.io/nvidia=r.example.com/nv", "docker.io/rocm=r.example.com/amd"})
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{
		"nvcr.io/nvidia/k8s-device-plugin:v0.20.0": "r.example.com/nv/k8s-device-plugin:v0.20.0",
		"nvcr.io/other@sha256:00":                  "r.example.com/nvcr/other@sha256:00",
		"nvcr.io/nvidia":                           "r.example.com/nv",
		"nvcr.iot/nvidia/x":                        "nvcr.iot/nvidia/x",
		"docker.io/rocm-x/y":                       "docker.io/rocm-x/y",
		"docker.io/rocm/k8s-device-plugin:1":       "r.example.com/amd/k8s-device-plugin:1",
		"driver":                                   "driver",
	} {
		if got := m.Replace(image); got != want {
			t.Errorf("%s is pulled as %s, want %s", image, got, want)
		}
	}
}

func TestWhatIsNoMirrorIsRefused(t *testing.T) {
	for _, texts := range [][]string{{"nvcr.io"}, {"=a"}, {"a="}, {"https://nvcr.io=b"}, {"a b=c"}, {"a=b", "a/=c"}} {
		if m, err := ParseMirrors(texts); err == nil {
			t.Errorf("%q is %v", strings.Join(texts, ","), m)
		}
	}
}
