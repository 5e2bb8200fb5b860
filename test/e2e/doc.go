// Package e2e runs the programs as their users do: whole processes, real control planes, simulated servers. It holds tests only.
package e2e
