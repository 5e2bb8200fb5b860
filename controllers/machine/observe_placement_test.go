package machine

import (
	"context"
	"fmt"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listing is a cache with ten hosts. It counts how often they are listed.
type listing struct {
	client.Reader
	lists int
}

func (l *listing) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if hosts, isHosts := into.(*metal3.BareMetalHostList); isHosts {
		l.lists++
		for i := range 10 {
			host := metal3.BareMetalHost{}
			host.Name = fmt.Sprint(i)
			hosts.Items = append(hosts.Items, host)
		}
	}
	return nil
}

func TestHostsAreListedOnceForMachinesOfOneMoment(t *testing.T) {
	var lists hostLists
	reader, now := &listing{}, time.Unix(0, 0)
	read := func(at time.Duration, want int) {
		t.Helper()
		hosts, err := lists.read(t.Context(), reader, "metal", now.Add(at))
		if err != nil || len(hosts) != 10 || reader.lists != want {
			t.Errorf("after %v: %d hosts, %v, listed %d times, want %d", at, len(hosts), err, reader.lists, want)
		}
		hosts[0].SameServer = "of this Machine's comparison alone"
		if again, _ := lists.read(t.Context(), reader, "metal", now.Add(at)); again[0].SameServer != "" {
			t.Error("what one Machine has compared is another's")
		}
	}
	read(0, 1)
	read(9*time.Millisecond, 1)
	read(10*time.Millisecond, 2)
	read(0, 3) // the clock went back
	lists.forget("metal")
	read(0, 4)
}
