// Package arch is the law of the source tree, made executable: who may import whom, what pure packages may not touch, how
// large things may grow, and that everything exported is documented. It holds tests only; `make lint` runs them.
package arch
