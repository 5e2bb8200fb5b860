// Package settled is the tenant's view of a simulated server once everything has settled: its Node and its ResourceSlices, as
// kubelet and the pods of the cluster's DaemonSets make them. There is no API server: what takes minutes there takes
// milliseconds here, for every mode.
package settled
