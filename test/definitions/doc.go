// Package definitions asks a real API server whether it takes the generated definitions, and whether it then refuses and
// admits what the tests beside the types say. It holds tests only.
package definitions
