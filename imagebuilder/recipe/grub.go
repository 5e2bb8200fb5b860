package recipe

import (
	"fmt"
	"strings"
)

// Loader is the boot loader of an architecture as Debian's packages have it.
type Loader struct {
	// Shim, Menu and GRUB are paths of the signed programs in the root file system: what the firmware starts, the manager of keys, and GRUB.
	Shim, Menu, GRUB string
	// ShimName, MenuName and GRUBName are their paths on the EFI system partition.
	ShimName, MenuName, GRUBName string
}

// Loaders are the boot loaders by architecture. The firmware starts ShimName on a disk that it has no boot entry for (UEFI specification, 3.5.1).
var Loaders = map[string]Loader{
	"amd64": {"usr/lib/shim/shimx64.efi.signed", "usr/lib/shim/mmx64.efi.signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
		"EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/mmx64.efi", "EFI/BOOT/grubx64.efi"},
	"arm64": {"usr/lib/shim/shimaa64.efi.signed", "usr/lib/shim/mmaa64.efi.signed", "usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed",
		"EFI/BOOT/BOOTAA64.EFI", "EFI/BOOT/mmaa64.efi", "EFI/BOOT/grubaa64.efi"},
}

// GRUBConfigPath is where Debian's signed GRUB looks for its configuration on the EFI system partition.
const GRUBConfigPath = "EFI/debian/grub.cfg"

// GRUBConfig returns the configuration of GRUB that starts the kernel of the release.
//
// The kernel is read from the disk that GRUB itself came from. Without it: a server with another disk of the same image, as after a change of the
// boot disk, starts the kernel of whichever disk the firmware lists first.
//
// The root file system is mounted for writing at once, after the initial ramdisk has checked it, so that the image needs no fstab.
func GRUBConfig(release string, arguments []string, id Identity) []byte {
	line := strings.Join(append([]string{"root=PARTUUID=" + strings.ToLower(id.RootGUID), "rw"}, arguments...), " ")
	return fmt.Appendf(nil, `set timeout=0
search --no-floppy --fs-uuid --set=root %[1]s
if regexp --set=1:disk '^\(([^,)]+)' "$cmdpath"; then
  if [ -f "($disk,gpt2)/boot/vmlinuz-%[2]s" ]; then set root="$disk,gpt2"; fi
fi
linux /boot/vmlinuz-%[2]s %[3]s
initrd /boot/initrd.img-%[2]s
boot
`, uuidText(id.RootUUID), release, line)
}

// uuidText returns the UUID as GRUB and blkid print it.
func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:])
}
