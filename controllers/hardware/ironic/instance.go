package ironic

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// installation is what an install gives to Ironic. It holds secrets: never log it.
type installation struct {
	instance map[string]any
	isLive   bool
	// readDrive reads the documents of the config drive, for readDocuments.
	readDrive func(context.Context) (hardware.ConfigDrive, error)
	drive     nodes.ConfigDrive
	// secrets are the documents of the drive, which must not be repeated.
	secrets []string
}

// readDocuments reads the documents of the config drive. It returns an error while they are not written. It does nothing where i is nil, for work that has none.
func (i *installation) readDocuments(ctx context.Context, host hardware.Host) error {
	if i == nil {
		return nil
	}
	documents, err := i.readDrive(ctx)
	if err != nil {
		return err
	}
	if documents.IsEmpty() {
		err := hardware.Errorf(hardware.Busy, "prepare work", host.String(), "the config drive is not written yet")
		err.Reason = hardware.ReasonNoConfigDrive
		return err
	}
	i.drive, err = configDrive(host, documents)
	i.secrets = []string{string(documents.UserData)}
	return err
}

// cleanSteps are the steps of manual cleaning. https://docs.openstack.org/ironic/latest/admin/cleaning.html
var cleanSteps = map[work][]nodes.CleanStep{
	workEraseMetadata: {{Interface: nodes.InterfaceDeploy, Step: "erase_devices_metadata"}},
	workEraseFull:     {{Interface: nodes.InterfaceDeploy, Step: "erase_devices"}},
}

// formats are the image formats that Ironic's agent writes, and the one that it does not write.
var formats = []string{"raw", "qcow2", hardware.FormatLiveISO}

// instanceInfo returns the instance_info of an install.
func instanceInfo(host hardware.Host, spec hardware.InstallSpec) (map[string]any, error) {
	const op = "install"
	if !slices.Contains(formats, spec.Image.Format) {
		return nil, hardware.Errorf(hardware.Unsupported, op, host.String(), "expected an image of the format %s, seen %q: Ironic's agent does not decompress",
			strings.Join(formats, " or "), spec.Image.Format)
	}
	if spec.Image.URL == "" {
		return nil, hardware.Errorf(hardware.Invalid, op, host.String(), "expected the URL of an image, seen none")
	}
	if spec.Image.Format == hardware.FormatLiveISO {
		return liveInfo(spec.Image), nil
	}
	algorithm, digest, ok := strings.Cut(spec.Image.Checksum, ":")
	if !ok || algorithm != "sha256" && algorithm != "sha512" {
		return nil, hardware.Errorf(hardware.Invalid, op, host.String(), "expected a checksum sha256:HEX or sha512:HEX, seen %q", spec.Image.Checksum)
	}
	info := map[string]any{
		"image_source": spec.Image.URL, "image_os_hash_algo": algorithm, "image_os_hash_value": digest, "image_disk_format": spec.Image.Format,
	}
	if hints := rootDevice(spec); len(hints) > 0 {
		info["root_device"] = hints
	}
	return info, nil
}

// rootDevice returns Ironic's hints for the disk. https://docs.openstack.org/ironic/latest/install/advanced.html#specifying-the-disk-for-deployment-root-device-hints
//
// Each has its operator, because Ironic takes the beginning of a value for one otherwise. Ironic compares in lower case. It does not tell which disk it has written:
// root_uuid_or_disk_id of a node is the UUID of a partition, and only where the image is one. So the next installation of a host without hints may go to another
// disk, and PreviousRootDisk is only known where something else has found it.
func rootDevice(spec hardware.InstallSpec) map[string]any {
	hints := map[string]any{}
	set := func(name, operator, value string) {
		if value != "" {
			hints[name] = operator + " " + value
		}
	}
	setWWN := func(wwn string) {
		name, value := wwnHint(wwn)
		set(name, equal, value)
	}
	wanted := spec.RootDevice
	set(nameHint(wanted.DeviceName), equal, wanted.DeviceName)
	set("serial", equal, wanted.SerialNumber)
	set("hctl", equal, wanted.HCTL)
	set("wwn_with_extension", equal, wanted.WWNWithExtension)
	set("wwn_vendor_extension", equal, wanted.WWNVendorExtension)
	setWWN(wanted.WWN)
	set("model", contains, wanted.Model)
	set("vendor", contains, wanted.Vendor)
	if wanted.Rotational != "" {
		hints["rotational"] = wanted.Rotational
	}
	if wanted.MinSizeBytes > 0 {
		const gib = 1 << 30
		hints["size"] = ">= " + strconv.FormatInt((wanted.MinSizeBytes+gib-1)/gib, 10)
	}
	// The disk of the installation before is the one to write, by what identifies it best. Its name may have changed since.
	switch previous, accepted := spec.PreviousRootDisk, spec.AcceptedRootDisk; {
	case strings.HasPrefix(accepted, "/dev/"):
		set(nameHint(accepted), equal, accepted)
	case hasWWNPrefix(accepted):
		setWWN(accepted)
	case accepted != "":
		set("serial", equal, accepted)
	case previous.WWN != "":
		setWWN(previous.WWN)
	case previous.SerialNumber != "":
		set("serial", equal, previous.SerialNumber)
	}
	return hints
}

// Operators of Ironic's hints.
const (
	equal    = "s=="
	contains = "<in>"
)

// nameHint returns Ironic's hint for the path of a disk. Its agent knows a path below by-path beside the name that the kernel gives.
func nameHint(path string) string {
	if strings.HasPrefix(path, "/dev/disk/by-path/") {
		return "by_path"
	}
	return "name"
}

// wwnPrefixes are those of a WWN as Ironic's inventory and Ingot's own agent have it.
var wwnPrefixes = []string{"0x", "naa.", "eui."}

func hasWWNPrefix(text string) bool {
	return slices.ContainsFunc(wwnPrefixes, func(prefix string) bool { return strings.HasPrefix(strings.ToLower(text), prefix) })
}

// wwnHint returns Ironic's hint for a WWN: its attribute wwn ends after 16 digits where the vendor has an extension, and wwn_with_extension has them all. The
// inventory has the longer one. Without it: the WWN that the inventory shows is taken for a hint, and no disk has it.
func wwnHint(wwn string) (name, value string) {
	value = strings.ToLower(wwn)
	if rest, isNAA := strings.CutPrefix(value, "naa."); isNAA {
		value = "0x" + rest // as udev writes it
	}
	const shortest = len("0x") + 16
	if strings.HasPrefix(value, "0x") && len(value) > shortest {
		return "wwn_with_extension", value
	}
	return "wwn", value
}

// configDrive returns the documents as Ironic takes them.
func configDrive(host hardware.Host, drive hardware.ConfigDrive) (nodes.ConfigDrive, error) {
	var documents nodes.ConfigDrive
	for name, document := range map[string]struct {
		text []byte
		into *map[string]any
	}{"metaData": {drive.MetaData, &documents.MetaData}, "networkData": {drive.NetworkData, &documents.NetworkData}} {
		if len(document.text) == 0 {
			continue
		}
		if json.Unmarshal(document.text, document.into) != nil {
			// The cause would repeat a part of the document.
			return documents, hardware.Errorf(hardware.Invalid, "install", host.String(), "%s is no JSON object, which Ironic needs", name)
		}
	}
	if len(drive.UserData) > 0 {
		documents.UserData = string(drive.UserData)
	}
	return documents, nil
}

// driver is the hardware type of a node and its driver_info. It holds secrets: never log it.
type driver struct {
	name string
	info map[string]any
}

// driverOf returns the driver of the host's node.
func driverOf(options Options, host hardware.Host) driver {
	info := map[string]any{}
	set := func(name, value string) {
		if value != "" {
			info[name] = value
		}
	}
	set("deploy_kernel", options.DeployKernel)
	set("deploy_ramdisk", options.DeployRamdisk)
	bmc := host.BMC
	address, err := url.Parse(bmc.Address)
	if err == nil && address.Scheme == "ipmi" {
		set("ipmi_address", address.Hostname())
		set("ipmi_port", address.Port())
		set("ipmi_username", bmc.Username)
		set("ipmi_password", bmc.Password)
		return driver{name: firstOf(options.HardwareType, "ipmi"), info: info}
	}
	if bmc.Address == "" { // Ironic has its own
		return driver{name: options.HardwareType, info: info}
	}
	set("redfish_address", bmc.Address)
	set("redfish_system_id", bmc.SystemPath)
	set("redfish_username", bmc.Username)
	set("redfish_password", bmc.Password)
	switch {
	case bmc.InsecureSkipVerify:
		info["redfish_verify_ca"] = false
	case options.BMCCAPath != "":
		info["redfish_verify_ca"] = options.BMCCAPath
	default:
		info["redfish_verify_ca"] = true
	}
	return driver{name: firstOf(options.HardwareType, "redfish"), info: info}
}

// ownPower says in a node's driver_info that its power does not hang on that of a parent.
//
// Ironic 29.0.5 as Debian 13 has it makes a node its own parent with every change of the node, and then powers on nothing, because the parent is locked: by
// the same work. A node that somebody has made the child of another is not told so.
const ownPower = "has_dedicated_power_supply"

// secrets returns what must not be repeated of the driver_info.
func (d driver) secrets() []string {
	var secrets []string
	for _, name := range []string{"ipmi_password", "redfish_password"} {
		secrets = append(secrets, text(d.info[name]))
	}
	return secrets
}

// operations returns what gives a node this driver_info. Other fields of it, which people have set in Ironic, stay.
func (d driver) operations() nodes.UpdateOpts {
	var operations nodes.UpdateOpts
	for name, value := range d.info {
		operations = append(operations, set("/driver_info/"+name, value))
	}
	return operations
}
