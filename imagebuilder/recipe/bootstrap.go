package recipe

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// loaderPackages have the boot loader as Debian signs it, by architecture. It boots with Secure Boot and without.
var loaderPackages = map[string][]string{
	"amd64": {"shim-signed", "grub-efi-amd64-signed"},
	"arm64": {"shim-signed", "grub-efi-arm64-signed"},
}

// basePackages are needed by every image that boots with systemd.
var basePackages = []string{"systemd-sysv", "udev", "dbus", "initramfs-tools", "zstd"}

// omittedDocs keep documentation out of the image, except for copyrights, which the licences ask for.
var omittedDocs = []string{"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/locale/*",
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"}

// initramfsDirs are the directories whose files the packages' scripts copy into the initial ramdisk, so that they must be there before.
var initramfsDirs = []string{"/etc/initramfs-tools/", "/etc/modprobe.d/", "/etc/modules-load.d/", "/etc/udev/rules.d/"}

// IsForInitramfs reports whether the initial ramdisk is made with the file.
func (file File) IsForInitramfs() bool {
	return slices.ContainsFunc(initramfsDirs, func(dir string) bool { return strings.HasPrefix(file.Path, dir) })
}

// KeyPath returns the path of the key of the repository with the index, on the node.
func KeyPath(index int, armored bool) string {
	if armored {
		return fmt.Sprintf("/etc/apt/keyrings/image-%d.asc", index)
	}
	return fmt.Sprintf("/etc/apt/keyrings/image-%d.gpg", index)
}

// SourcesLine returns the line of sources.list(5) with the key at the path.
func (r Repository) SourcesLine(key string) string {
	options := "signed-by=" + key
	if r.Snapshot != nil {
		options += " check-valid-until=no"
	}
	return strings.Join(append([]string{"deb", "[" + options + "]", r.URL, r.Suite}, r.Components...), " ")
}

// SnapshotHook returns the commands that refuse a list of packages that was not valid at the time of the snapshot, before anything of it runs; empty: apt itself
// refuses one that is not valid now. $1 is the new system.
//
// Without it: whoever stands between here and the snapshot gives an older list, signed and expired, and the image lacks its corrections.
func (r Repository) SnapshotHook() string {
	if r.Snapshot == nil {
		return ""
	}
	list := `"$1"/var/lib/apt/lists/` + quote(listName(r.URL)+"_dists_"+listName(r.Suite))
	return fmt.Sprintf(`f=%[1]s_InRelease; [ -e "$f" ] || f=%[1]s_Release
field() { sed -n "s/^$1: *//p" "$f" | head -n 1; }
made=$(field Date) until=$(field Valid-Until)
[ -n "$made" ] && [ "$(date -d "$made" +%%s)" -le %[2]d ] && { [ -z "$until" ] || [ "$(date -d "$until" +%%s)" -ge %[2]d ]; } || {
echo "E: "%[3]s": expected a list that was valid at %[4]s, the time of the snapshot; seen Date: $made, Valid-Until: $until. Correct snapshot in the recipe, or use another mirror" >&2; exit 1; }`,
		list, r.Snapshot.Unix(), quote(r.URL+" "+r.Suite), r.Snapshot.UTC().Format(time.RFC3339))
}

// listName returns the name of a repository's files where apt keeps them.
func listName(text string) string {
	if _, after, found := strings.Cut(text, "://"); found {
		text = strings.TrimRight(after, "/")
	}
	var out strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b == '/':
			out.WriteByte('_')
		case b <= ' ' || b >= 0x7f || strings.IndexByte("\\|{}[]<>\"^~_=!@#$%^&*", b) >= 0:
			fmt.Fprintf(&out, "%%%02x", b)
		default:
			out.WriteByte(b)
		}
	}
	return out.String()
}

// BootstrapInputs are the files that mmdebstrap needs.
type BootstrapInputs struct {
	// Archive is the tar archive to write.
	Archive string
	// Keys are the paths of the keys, by repository.
	Keys []string
	// Initramfs is a tar archive with the files of the recipe that the initial ramdisk is made with; empty: there are none.
	Initramfs string
	// LocalPackages are the paths of the local packages.
	LocalPackages []string
}

// BootstrapArguments returns the arguments of mmdebstrap. It works in a user namespace, so that nobody has to be root.
func (r Recipe) BootstrapArguments(in BootstrapInputs) []string {
	packages := slices.Concat(basePackages, loaderPackages[r.Architecture], []string{r.Kernel.Package}, r.Debian.Packages)
	args := []string{"--mode=unshare", "--variant=minbase", "--format=tar", "--architectures=" + r.Architecture,
		"--include=" + strings.Join(packages, ","), `--aptopt=APT::Install-Recommends "false"`, `--aptopt=Acquire::Languages "none"`}
	for _, o := range omittedDocs {
		args = append(args, "--dpkgopt="+o)
	}
	if in.Initramfs != "" {
		args = append(args, "--essential-hook=tar-in "+quote(in.Initramfs)+" /")
	}
	for _, repository := range r.Debian.Repositories {
		if hook := repository.SnapshotHook(); hook != "" {
			args = append(args, "--extract-hook="+hook)
		}
	}
	args = append(args, localPackageHooks(in.LocalPackages)...)
	args = append(args, r.Debian.Repositories[0].Suite, in.Archive)
	for i, repository := range r.Debian.Repositories {
		args = append(args, repository.SourcesLine(in.Keys[i]))
	}
	return args
}

// localPackageHooks install the packages after all others, with what they depend on.
func localPackageHooks(packages []string) []string {
	if len(packages) == 0 {
		return nil
	}
	const dir = "/var/cache/apt/archives/image"
	hooks := []string{`--customize-hook=mkdir -p "$1"` + dir}
	install := `--customize-hook=chroot "$1" apt-get install --yes --no-install-recommends`
	remove := `--customize-hook=rm -r "$1"` + dir
	for _, p := range packages {
		hooks = append(hooks, "--customize-hook=copy-in "+quote(p)+" "+dir)
		install += " " + quote(dir+"/"+path.Base(p))
	}
	return append(hooks, install, remove)
}

// quote returns the text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
