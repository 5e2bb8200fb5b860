// Package fleet implements `ingot machines`, `ingot why` and `ingot hosts`, which show what each Machine waits for, why a Machine
// is not Ready, and which hosts there are. The answers are computed from the objects alone; the commands only read them.
package fleet
