package hardware

// ArchitectureName returns the name that Kubernetes has for an architecture, from that of Linux (uname -m), of Redfish (InstructionSet) or of iPXE. A name
// that none of them has is returned as it is.
func ArchitectureName(name string) string {
	switch name {
	case "x86_64", "x86-64":
		return "amd64"
	case "aarch64", "ARM-A64":
		return "arm64"
	}
	return name
}
