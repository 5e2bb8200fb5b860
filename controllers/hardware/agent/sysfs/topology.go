package sysfs

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// readTopology returns the number of processors and of their cores that are online, 0 for what the kernel does not tell. A core is one of its die, which
// is one of its processor (Documentation/admin-guide/cputopology.rst); the ids have gaps.
func readTopology(root fs.FS) (sockets, cores int) {
	const dir = "sys/devices/system/cpu"
	packages, all := map[string]bool{}, map[[3]string]bool{}
	for _, name := range listNames(root, dir) {
		if !isNumbered(name, "cpu") {
			continue
		}
		id := func(attribute string) string { return readAttribute(root, path.Join(dir, name, "topology", attribute)) }
		processor, core := id("physical_package_id"), id("core_id")
		if isID(processor) {
			packages[processor] = true
		}
		if isID(processor) && isID(core) {
			all[[3]string{processor, id("die_id"), core}] = true
		}
	}
	return len(packages), len(all)
}

// isID reports whether the attribute is an id. The kernel writes -1 for one that it does not know.
func isID(attribute string) bool {
	_, err := strconv.ParseUint(attribute, 10, 31)
	return err == nil
}

// countNUMANodes returns the number of memory nodes, 0 for a kernel that does not tell.
func countNUMANodes(root fs.FS) int {
	n := 0
	for _, name := range listNames(root, "sys/devices/system/node") {
		if isNumbered(name, "node") {
			n++
		}
	}
	return n
}

// isNumbered reports whether the name is the prefix and a number.
func isNumbered(name, prefix string) bool {
	number, found := strings.CutPrefix(name, prefix)
	return found && isID(number)
}

// readLinkWidth returns a number of PCIe lanes, 0 where it is unknown. The kernel writes 0 for a device without a link, and 255 for one that
// does not answer any more.
func readLinkWidth(root fs.FS, name string) int {
	const widest = 32
	if width := readNumber(root, name); width > 0 && width <= widest {
		return int(width)
	}
	return 0
}

// readDriver returns the name of the driver that the link leads to, "" where there is none.
func readDriver(root fs.FS, name string) string {
	target, err := fs.ReadLink(root, name)
	if err != nil {
		return ""
	}
	return path.Base(target)
}
