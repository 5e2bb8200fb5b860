package network

import (
	"context"
	"slices"
	"time"
)

// linkTime is how long a port may take from its start to its link. Ports of 100 Gbit/s and more train their lanes for several seconds.
const linkTime = 10 * time.Second

// StartOtherPorts starts the ports that the agent's own network does not use, and waits until each has a link, at most 10 seconds. They get no address
// of a router. Without it: the kernel does not tell the link of a port that is down, and every server lacks the links that a NodeType requires.
func StartOtherPorts(ctx context.Context, clock Clock) {
	const interval = 250 * time.Millisecond
	startIdlePorts()
	for end := clock.Now().Add(linkTime); clock.Now().Before(end) && isLinkMissing(); {
		if clock.Sleep(ctx, interval) != nil {
			return
		}
	}
}

// isLinkMissing reports whether a port has no link.
func isLinkMissing() bool {
	ports, err := listPorts()
	return err != nil || slices.ContainsFunc(ports, func(p port) bool { return !p.isVirtual && !hasLink(p.link) })
}
