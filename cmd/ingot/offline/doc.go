// Package offline reads Ingot's objects from manifests, for the commands that need no cluster: from files, folders and standard
// input, as `kubectl apply -f` does. It refuses what an API server would refuse and sets the same defaults, so that the answer of
// a command is true for the object that would be stored.
package offline
