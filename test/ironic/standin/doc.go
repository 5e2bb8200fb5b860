// Package standin puts the servers of a rack behind the nodes of an Ironic whose hardware is memory.
//
// Ironic's hardware type fake-hardware moves no server. What it makes of the power of a node is done here to the server, and what it tells its agent is done
// here to the server's disks. Whatever happens to a server afterwards is the rack's: it boots what is on its disk.
package standin
