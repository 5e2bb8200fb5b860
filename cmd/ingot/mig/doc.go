// Package mig implements `ingot mig`, which shows how a GPU model can be partitioned into MIG instances. It uses the same search
// over placements as the controller that accepts and refuses the layouts of NodeTypes.
package mig
