// Package identity compares what identifies a server: it returns serial numbers, names, MAC addresses and UUIDs in one form for all sources, and
// nothing for a placeholder or an address that identifies no server.
package identity
