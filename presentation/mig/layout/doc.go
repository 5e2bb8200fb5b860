// Package layout decides whether a GPU can have the requested GPU instances, and where each of them is placed.
//
// A layout is valid when every instance has a start that its profile allows, no two instances overlap on the memory slices, and
// there are enough compute slices. Counting slices is not enough, because a profile can start at some slices only.
package layout
