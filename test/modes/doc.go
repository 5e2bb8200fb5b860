// Package modes tests every way to present GPUs. A case is a file testdata/<name>.yaml with a NodeType, an OSImage and the hardware of
// a server. The test renders the documents, boots a simulated server with them, installs the tenant's software as Ingot's charts or
// manifests tell it, and expects that the verdict about the resulting node passes.
//
// A case also lists changes, each of one line of the documents, of the tenant's software, of the image or of the hardware. With a
// change exactly the checks that it names must fail.
//
// The tests need no API server and take seconds: package offlinenode computes the Node that kubelet and the DaemonSets' pods would
// produce. Package rack runs the same pods with a real API server.
package modes
