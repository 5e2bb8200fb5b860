// Package offline reads Ingot's objects from manifests, for the commands that ask no cluster: files, folders and standard
// input, as `kubectl apply -f` takes them. What an API server would refuse is refused here too, and its defaults are filled
// in, so that an answer holds for the object that would be stored.
package offline
