package cloudinit

import (
	"maps"
	"slices"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// BenchmarkRender makes every document of a Machine's cloud-config, and in turn decodes and encodes the same cloud-config with a
// bare yaml.v3. It reports the time of a rendering as ns/op, that of the bare one, and how many times as long a rendering takes.
func BenchmarkRender(b *testing.B) {
	all := cases(b)
	maps.Copy(all, modes(b))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		in := all[name]
		docs, err := Render(in)
		if err != nil {
			b.Fatal(err)
		}
		if in.Kind == v1alpha1.UserDataIgnition {
			continue
		}
		config := cloudConfig(b, docs.UserData)
		b.Run(name, func(b *testing.B) {
			var rendering, bare time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := Render(in); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				decodeAndEncode(b, config)
				rendering, bare = rendering+middle.Sub(begin), bare+time.Since(middle)
			}
			b.ReportMetric(float64(rendering)/float64(b.N), "ns/op")
			b.ReportMetric(float64(bare)/float64(b.N), "bare-ns/op")
			b.ReportMetric(float64(rendering)/float64(bare), "times-bare")
		})
	}
}

func decodeAndEncode(b *testing.B, text []byte) {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		b.Fatal(err)
	}
	if _, err := yaml.Marshal(v); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIgnition makes every document of a Machine on an image that reads Ignition, through butane.
func BenchmarkIgnition(b *testing.B) {
	for _, system := range []string{"fedora", "flatcar", "rhcos"} {
		in := ignited(b, system)
		b.Run(system, func(b *testing.B) {
			for b.Loop() {
				if _, err := Render(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
