// Package logbuffer keeps the end of the agent's log in memory, so that it reaches the boot service also when the network was away. The log has the
// agent's lines and the kernel's warnings and errors, and no secrets.
package logbuffer
