package hardware

import (
	"fmt"
	"slices"
)

// MatchDisks returns for each known disk the index of the present disk that it is, or -1. Every present disk stands for one known disk
// at most, and the descriptions that agree best belong together. Example: a controller has two namespaces with its serial number, and
// one was deleted. The other one stands for itself alone, so that the deleted one is not found.
//
// The time that it takes grows with the number of disks and not with its square, so that an agent that lies about a thousand of them keeps nobody busy.
func MatchDisks(known, present []Disk) []int {
	isUsed := make([]bool, len(present))
	wwns, sizes, serials, paths, anonymous := newDiskQueues(isUsed), newDiskQueues(isUsed), newDiskQueues(isUsed), newDiskQueues(isUsed), newDiskQueues(isUsed)
	for j, k := range diskKeys(present) {
		wwns.add(k.wwn, j)
		sizes.add(k.serialAndSize, j)
		serials.add(k.serial, j)
		paths.add(k.pathAndSize, j)
		if !k.hasIdentity {
			anonymous.add(k.pathAndSize, j)
		}
	}
	keys, found := diskKeys(known), slices.Repeat([]int{-1}, len(known))
	for _, choose := range []func(diskKey) int{
		func(k diskKey) int { return wwns.first(k.wwn) },
		func(k diskKey) int { return sizes.first(k.serialAndSize) },
		func(k diskKey) int {
			if !k.hasIdentity {
				return paths.first(k.pathAndSize)
			}
			return lowerIndex(serials.first(k.serial), anonymous.first(k.pathAndSize))
		},
	} {
		for i, k := range keys {
			if found[i] < 0 {
				if found[i] = choose(k); found[i] >= 0 {
					isUsed[found[i]] = true
				}
			}
		}
	}
	return found
}

// diskKey has what disks are compared by, each empty where it says nothing.
type diskKey struct {
	wwn, serial, serialAndSize string
	// pathAndSize is for disks of which at least one has no identity.
	pathAndSize string
	hasIdentity bool
}

func diskKeys(disks []Disk) []diskKey {
	out := make([]diskKey, len(disks))
	for i := range disks {
		out[i] = diskKeyOf(disks[i])
	}
	return out
}

func diskKeyOf(d Disk) diskKey {
	k := diskKey{wwn: NormalWWN(d.WWN), serial: normalSerial(d.SerialNumber)}
	k.hasIdentity = k.wwn != "" || k.serial != ""
	if k.serial != "" {
		k.serialAndSize = fmt.Sprintf("%s %d", k.serial, d.SizeBytes)
	}
	if d.Name != "" {
		k.pathAndSize = fmt.Sprintf("%s %d", d.Name, d.SizeBytes)
	}
	return k
}

// diskQueues have the indexes of disks by a value, and forget those that are used.
type diskQueues struct {
	of     map[string][]int
	isUsed []bool
}

func newDiskQueues(isUsed []bool) diskQueues { return diskQueues{map[string][]int{}, isUsed} }

func (q diskQueues) add(value string, index int) {
	if value != "" {
		q.of[value] = append(q.of[value], index)
	}
}

// first returns the lowest index that has the value and is not used, or -1.
func (q diskQueues) first(value string) int {
	for len(q.of[value]) > 0 {
		if at := q.of[value][0]; !q.isUsed[at] {
			return at
		}
		q.of[value] = q.of[value][1:]
	}
	return -1
}

// lowerIndex returns the lower of two indexes of which -1 is none.
func lowerIndex(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// DiskSet has disks by what they are compared by. The zero value is empty.
type DiskSet struct {
	wwns, serials, anonymous, paths map[string]bool
}

// Add adds a disk.
func (s *DiskSet) Add(disk Disk) {
	if s.wwns == nil {
		*s = DiskSet{wwns: map[string]bool{}, serials: map[string]bool{}, anonymous: map[string]bool{}, paths: map[string]bool{}}
	}
	k := diskKeyOf(disk)
	s.wwns[k.wwn] = true
	s.serials[k.serialAndSize] = true
	if k.wwn == "" {
		s.anonymous[k.serialAndSize] = true
	}
	if !k.hasIdentity {
		s.paths[k.pathAndSize] = true
	}
}

// HasPath reports whether a disk with an identity is a further path to one of the set, such as the second port of a disk at two controllers: it has the same WWN
// or, where one of the two has none, the same serial number and size.
func (s *DiskSet) HasPath(disk Disk) bool {
	k := diskKeyOf(disk)
	has := func(set map[string]bool, value string) bool { return value != "" && set[value] }
	return has(s.wwns, k.wwn) || has(s.anonymous, k.serialAndSize) || k.wwn == "" && has(s.serials, k.serialAndSize) || has(s.paths, k.pathAndSize)
}
