// Package sysfs reads what Linux tells about a server's hardware under /sys and /proc: the agent's inventory.
package sysfs
