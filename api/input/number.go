package input

import "math"

// Count returns the number as a count of 32 bits: what is negative is 0, which says nothing, and what is too large is the largest. Without it: an agent counts
// 4,294,967,297 processors, and its server has one.
func Count(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
