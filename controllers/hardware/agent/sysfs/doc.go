// Package sysfs reads the hardware of a server from /sys and /proc of Linux: the inventory that the agent reports.
package sysfs
