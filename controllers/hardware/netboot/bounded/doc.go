// Package bounded accepts connections as far as there is room for them, and ends those that take nothing.
//
// Without it: a program on the provisioning network asks for the agent's initrd two thousand times and reads no answer. Each connection has its goroutine, its
// buffers and its file for as long as it likes, and the process that serves boots, which may lead the managers too, has none left.
package bounded
