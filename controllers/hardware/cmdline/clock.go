package cmdline

import "time"

const (
	// maxBehind is how far the machine's clock may be behind the command line. It was made before the machine read it, so a right clock is not behind
	// at all; some seconds are no harm, and a clock that is disciplined by the server's firmware is better than ours.
	maxBehind = 5 * time.Second
	// maxAhead is how far the machine's clock may be ahead. A command line is read within minutes of its making from a boot document; a server that
	// boots an image of virtual media may test its memory for half an hour before. A clock that is ahead by more runs in local time (by up to
	// 14 hours), or was set wrong.
	maxAhead = time.Hour
)

// CorrectTime returns the time that the machine's clock, which says now, is set to. isWrong is false when it is right, or when that is not known.
//
// Without it: the battery of a server is empty and its clock begins in 1970 or 2000, or its clock has the local time, and the certificates of the boot
// service and of image servers are not valid yet, or no more.
func (a Arguments) CorrectTime(now time.Time) (right time.Time, isWrong bool) {
	if a.Time.IsZero() {
		return now, false
	}
	if difference := now.Sub(a.Time); difference < -maxBehind || difference > maxAhead {
		return a.Time, true
	}
	return now, false
}

// Remaining returns how long the attempt goes on at the time at which the command line was made; 0: that is not known.
func (a Arguments) Remaining() time.Duration {
	if a.Time.IsZero() || !a.Deadline.After(a.Time) {
		return 0
	}
	return a.Deadline.Sub(a.Time)
}
