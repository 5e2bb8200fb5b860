// Package fleet implements `ingot machines`, `ingot why`, `ingot hosts` and `ingot entitlements`, which show what each Machine waits for, why a Machine
// is not Ready, which hosts there are, and what tenants of shared clusters have. The answers are computed from the objects alone; the commands only read them.
package fleet
