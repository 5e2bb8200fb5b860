package target

import "testing"

func FuzzSecond(f *testing.F) {
	f.Add([]byte("ab"))
	f.Fuzz(func(_ *testing.T, text []byte) { Second(text) })
}

func FuzzNothing(f *testing.F) {
	f.Fuzz(func(*testing.T, []byte) {})
}
