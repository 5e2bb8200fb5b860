// Package layout decides whether a GPU can be cut into the GPU instances that are asked for, and where each of them sits.
//
// A layout is valid when every instance finds a start of its profile so that no two overlap on the memory slices, and the
// compute slices suffice. Counting slices is not enough: it misses that a profile starts at some slices only.
package layout
