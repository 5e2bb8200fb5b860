package bmc

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// rushWindow is the time within which requests count together for WireRules.FreezesAfter.
const rushWindow = time.Minute

// countRequest counts a request, which may freeze the BMC.
func (b *BMC) countRequest() {
	limit, now := b.options.Personality.Wire.FreezesAfter, b.options.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.rushBegan) >= rushWindow {
		b.rush, b.rushBegan = 0, now
	}
	b.rush++
	b.frozen = b.frozen || limit > 0 && b.rush > limit
}

// isFrozen reports whether the BMC answers no request any more.
func (b *BMC) isFrozen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.frozen
}

// isBootUnloaded reports whether the system still shows an empty Boot. The caller holds mu.
func (b *BMC) isBootUnloaded() bool {
	return b.unloadedReads < b.options.Personality.Boot.LoadsAfter
}

// countBoot does what the BMC does at each boot of the server. The caller holds mu.
func (b *BMC) countBoot() {
	b.boots++
	b.unloadedReads = 0
	if b.options.Personality.RenumbersNICs {
		b.tree.renumberNICs(b.boots)
	}
}

// renumberNICs moves the network interfaces of the server to other paths, in another order.
func (t tree) renumberNICs(boot int) {
	collection := PathSystem + "/EthernetInterfaces"
	var nics []map[string]any
	for at, document := range t {
		if path.Dir(at) == collection {
			nics = append(nics, document)
			delete(t, at)
		}
	}
	slices.SortFunc(nics, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(b["MACAddress"]), fmt.Sprint(a["MACAddress"]))
	})
	if boot%2 == 0 {
		slices.Reverse(nics)
	}
	var members []string
	for i, document := range nics {
		delete(document, "Id")
		delete(document, "Name")
		members = append(members, t.add(fmt.Sprintf("%s/%d", collection, 10*boot+i), "#EthernetInterface.v1_12_0.EthernetInterface", document))
	}
	t.collection(collection, members...)
}
