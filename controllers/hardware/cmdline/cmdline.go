package cmdline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

// Names of the kernel arguments, beside those of the network.
const (
	// ArgURL is the base URL of the boot service.
	ArgURL = "ingot.url"
	// ArgToken authorizes the agent at the boot service.
	ArgToken = "ingot.token"
	// ArgCA is the pin of an authority whose certificates the agent accepts of the boot service (package pin). It may be repeated.
	ArgCA = "ingot.ca"
	// argHost is the host that the server is: ingot.host=NAMESPACE/NAME. It is for the console only.
	argHost = "ingot.host"
	// argAttempt is the number of the attempt, for the console only.
	argAttempt = "ingot.attempt"
	// argTime is the time at which the command line was made, in seconds since 1970. The machine's own clock may be wrong by years, and no
	// certificate is valid then.
	argTime = "ingot.time"
	// argDeadline is the time at which the attempt ends, in seconds since 1970.
	argDeadline = "ingot.deadline"
)

// Arguments are what the agent's command line says. They hold the token: never log them.
type Arguments struct {
	// URL is the base URL of the boot service.
	URL string
	// Token authorizes the agent at the boot service.
	Token string
	// Pins are the authorities that the boot service's certificate may be of; empty: those that the ramdisk trusts.
	Pins []string
	// Host is the host that the server is, NAMESPACE/NAME, and Attempt the number of its attempt.
	Host    string
	Attempt int64
	// Time is when the command line was made, and Deadline when the attempt ends; zero: not known.
	Time, Deadline time.Time
	// Network is how the agent brings up the network.
	Network Network
}

// String returns a text without the token, so that printing Arguments shows no secret.
func (a Arguments) String() string { return "command line of the agent of " + a.URL }

// GoString does the same for the verb %#v.
func (a Arguments) GoString() string { return a.String() }

// Words returns the kernel arguments, for Parse.
func (a Arguments) Words() []string {
	words := []string{ArgURL + "=" + a.URL, ArgToken + "=" + a.Token}
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	for _, text := range a.Pins {
		add(ArgCA, text)
	}
	add(argHost, a.Host)
	if a.Attempt > 0 {
		add(argAttempt, strconv.FormatInt(a.Attempt, 10))
	}
	if !a.Time.IsZero() {
		add(argTime, strconv.FormatInt(a.Time.Unix(), 10))
	}
	if !a.Deadline.IsZero() {
		add(argDeadline, strconv.FormatInt(a.Deadline.Unix(), 10))
	}
	return append(words, a.Network.words()...)
}

// Parse returns what a kernel command line says. Of a repeated argument the last counts, as it does for the kernel. An argument that cannot be used
// is left out and is part of the error, which names it; what could be read is returned with the error. Pins add up, and one that cannot be used stays:
// without it the agent would trust what the ramdisk trusts, which is more than the command line says.
func Parse(line string) (Arguments, error) {
	var a Arguments
	var failed []string
	for word := range strings.FieldsSeq(line) {
		name, value, found := strings.Cut(word, "=")
		if !found {
			continue
		}
		if err := a.set(name, value); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", name, err))
		}
	}
	if err := a.Network.Validate(); err != nil {
		failed = append(failed, err.Error())
	}
	if len(failed) > 0 {
		return a, fmt.Errorf("the kernel command line: %s", strings.Join(failed, "; "))
	}
	return a, nil
}

// hostPattern is the form of a host's namespace and name.
var hostPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,252}/[a-z0-9][a-z0-9.-]{0,252}$`)

// set sets what one argument says; other arguments change nothing.
func (a *Arguments) set(name, value string) (err error) {
	switch name {
	case ArgURL:
		a.URL = value
	case ArgToken:
		a.Token = value
	case ArgCA:
		a.Pins = append(a.Pins, value)
		return pin.Check(value)
	case argHost:
		if !hostPattern.MatchString(value) {
			return fmt.Errorf("%q: expected NAMESPACE/NAME", value)
		}
		a.Host = value
	case argAttempt:
		a.Attempt, err = strconv.ParseInt(value, 10, 64)
	case argTime:
		a.Time, err = parseTime(value)
	case argDeadline:
		a.Deadline, err = parseTime(value)
	default:
		return a.Network.set(name, value)
	}
	return err
}

// maxTime is the last second of the year 9999: what is later is no time that a boot service wrote.
const maxTime = 253402300799

func parseTime(text string) (time.Time, error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 || seconds > maxTime {
		return time.Time{}, fmt.Errorf("%q: expected seconds since 1970", text)
	}
	return time.Unix(seconds, 0), nil
}
