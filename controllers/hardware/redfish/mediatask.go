package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// insertTime is how long a BMC may take to report an image that it has accepted, where nothing tells how far it is. The image is fetched when the
	// server reads it, so that an insertion takes seconds.
	insertTime = 30 * time.Second
	// taskTime is how long the task of an insertion may last. A BMC may copy the whole image, of some 100 MiB, before it inserts it.
	taskTime = 10 * time.Minute
)

// acceptance is the answer to a request that the BMC has accepted.
type acceptance struct {
	// monitor is the path of the task or task monitor of a request that goes on; empty: it is over, or nothing names its task.
	monitor string
}

// insertion is an image that a slot was asked to insert.
type insertion struct {
	image, monitor string
	at             time.Time
}

// acceptanceOf reads an answer. A request that goes on is answered with 202 and the path of a task monitor in Location (DSP0266, 12.2), or with the task.
func acceptanceOf(resp *http.Response) acceptance {
	defer schemas.DeferredCleanupHTTPResponse(resp)
	if resp.StatusCode != http.StatusAccepted {
		return acceptance{}
	}
	location, err := url.Parse(resp.Header.Get("Location"))
	if err == nil && location.Path != "" {
		return acceptance{monitor: location.RequestURI()}
	}
	var task taskDocument
	raw, err := io.ReadAll(resp.Body)
	if err == nil && json.Unmarshal(raw, &task) == nil && task.State != "" {
		return acceptance{monitor: task.ID}
	}
	return acceptance{}
}

// taskDocument is a task, or the answer of a task monitor.
type taskDocument struct {
	ID       string `json:"@odata.id"`
	State    string `json:"TaskState"`
	Messages []message
}

// failedStates are the states of a task that has ended without what it was to do (DSP2046, Task).
var failedStates = []string{"Exception", "Killed", "Cancelled", "Interrupted", "Stopping"}

// readTask reads the task of an insertion. isOver is true when it has ended or is gone. An error in failed is what it ended with.
func (c *conn) readTask(monitor string) (isOver bool, failed, err error) {
	resp, err := c.api.Get(monitor)
	switch {
	case isMissing(err):
		return true, nil, nil // a task that has ended is removed after a while
	case isNotFetched(err), isRefused(err):
		return true, err, nil // a task monitor answers as the request would have
	case err != nil:
		return false, nil, err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	if resp.StatusCode == http.StatusAccepted {
		return false, nil, nil
	}
	var task taskDocument
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, nil, err
	}
	_ = json.Unmarshal(raw, &task) // the answer of a task monitor at the end may have no body
	switch {
	case slices.Contains(failedStates, task.State):
		return true, taskError(task), nil
	case task.State == "" || strings.HasPrefix(task.State, "Completed"):
		return true, nil, nil
	}
	return false, nil, nil
}

// taskError returns what a task ended with.
func taskError(task taskDocument) error {
	words := []string{"the task ended with " + task.State}
	for _, m := range task.Messages {
		words = append(words, m.String())
	}
	return errors.New(strings.Join(words, ": "))
}

// checkInsertions looks at the insertions that the slots were asked for earlier. It returns the images to insert now: all of them, those after one that
// was not fetched, or none when one is inserted meanwhile. An error says that an insertion goes on, or that the last of the images was not fetched.
//
// Without it: a BMC takes a minute to fetch the image, and each call before the minute is over begins again.
func (c *conn) checkInsertions(slots []*mediaSlot, images []string) (rest []string, err error) {
	for _, slot := range slots {
		known, ok := c.line().insertionAt(slot.uri)
		at := slices.Index(images, known.image)
		if !ok || slot.hasMedia() {
			continue
		}
		if at < 0 { // it is of an earlier boot
			c.line().dropInsertion(slot.uri)
			continue
		}
		isOver, cause, err := c.checkInsertion(known)
		if err != nil {
			return nil, err
		}
		if cause == nil {
			if err := c.checkInserted(slot, known.image); err == nil || !isOver || hardware.KindOf(err) != hardware.Busy {
				return nil, err
			}
		}
		c.line().dropInsertion(slot.uri)
		if at == len(images)-1 {
			return nil, c.notFetchedError(known.image, cause)
		}
		return images[at+1:], nil
	}
	return images, nil
}

// checkInsertion returns whether nothing more is to be expected of an insertion, and what it ended with where the BMC says that it failed.
func (c *conn) checkInsertion(known insertion) (isOver bool, cause, err error) {
	spent := c.bmc.client.options.Clock().Sub(known.at)
	if known.monitor == "" {
		return spent >= insertTime, nil, nil
	}
	isOver, cause, err = c.readTask(known.monitor)
	if err == nil && !isOver && spent >= taskTime {
		return true, fmt.Errorf("its task has not ended after %s", spent.Round(time.Second)), nil
	}
	return isOver && spent >= insertTime, cause, err
}

// line returns the way to the BMC.
func (c *conn) line() *line { return c.bmc.client.lineTo(c.bmc.endpoint.Address) }

// insertionAt returns the insertion that a slot was asked for last.
func (l *line) insertionAt(slot string) (insertion, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.insertions[slot]
	return known, ok
}

// keepInsertion keeps an insertion that a slot was asked for.
func (l *line) keepInsertion(slot string, asked insertion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.insertions[slot] = asked
}

// dropInsertion forgets the insertion that a slot was asked for.
func (l *line) dropInsertion(slot string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.insertions, slot)
}
