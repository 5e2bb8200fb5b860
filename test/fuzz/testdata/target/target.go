// Package target has a fault that a fuzzer finds at once.
package target

// Second returns the second byte.
func Second(text []byte) byte { return text[1] }
