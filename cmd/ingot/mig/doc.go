// Package mig is `ingot mig`: how a GPU model can be partitioned into MIG instances, by the same search over placements that
// accepts and refuses the layouts of NodeTypes.
package mig
