package revisionrollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// maxName is the limit of a label's value: a Machine carries the name of the Rollout that moves it.
	maxName = 63
	// nameHash hex digits tell apart revisions whose names must be cut.
	nameHashDigits = 8
)

// Name of a Rollout to a revision: the revision's name and a number that grows with every Rollout of the NodeType, at
// most 63 bytes.
func rolloutName(revision string, number int64) string {
	end := "-" + strconv.FormatInt(number, 10)
	if room := maxName - len(end); len(revision) > room {
		sum := sha256.Sum256([]byte(revision))
		revision = strings.TrimRight(revision[:room-nameHashDigits-1], "-.") + "-" + hex.EncodeToString(sum[:])[:nameHashDigits]
	}
	return revision + end
}

// Number of the Rollout of that name; 0 when a person gave it a name without one.
func Number(rollout string) int64 {
	number, err := strconv.ParseInt(rollout[strings.LastIndexByte(rollout, '-')+1:], 10, 64)
	if err != nil || number < 0 {
		return 0
	}
	return number
}

// Newer tells whether the first of two Rollouts of one NodeType, by their names, was made after the second.
func IsNewer(first, second string) bool {
	return cmp.Or(cmp.Compare(Number(first), Number(second)), cmp.Compare(first, second)) > 0
}
