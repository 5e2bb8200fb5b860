// Package modes proves the presentations: for each mode there is, a NodeType and an OSImage as people write them, and a server as
// it stands in a rack. The documents are rendered from the first two; the simulated server lives by the documents, by its hardware
// and by the tenant's software as it would be installed, with what Ingot says for it; and the verdict of what it shows passes.
//
// Then one line is changed, of the documents, of what is installed in the tenant, of the image or of the hardware, and exactly the
// check that is named fails. A mode's file is testdata/<name>.yaml.
//
// There is no API server, so that all of it takes seconds: package offlinenode computes what kubelet and the DaemonSets' pods would make of
// the node. The same pods run in front of a real one in test/rack.
package modes
