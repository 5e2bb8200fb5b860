package recipe

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	// packagePattern is that of Debian Policy 5.6.1, with an optional version.
	packagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$`)
	suitePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]*$`)
	unitPattern    = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]+\.(service|socket|timer|mount|target|path|swap|automount|slice)$`)
	modulePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_~-]*$`)
	goVersion      = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+([-+][A-Za-z0-9.+-]+)?$`)
	tagPattern     = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)
	// argumentPattern leaves out what GRUB's scripts give a meaning.
	argumentPattern = regexp.MustCompile(`^[A-Za-z0-9_.,:=/@%+~-]+$`)
	ownerPattern    = regexp.MustCompile(`^[a-z0-9_][a-z0-9_-]*:[a-z0-9_][a-z0-9_-]*$`)
)

// faults collects what is wrong with a recipe.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// match adds a fault unless the value matches.
func (f *faults) match(field, value string, pattern *regexp.Regexp, expected string) {
	if !pattern.MatchString(value) {
		f.add(field, "expected %s, seen %q", expected, value)
	}
}

// matchAll adds a fault for each value that does not match.
func (f *faults) matchAll(field string, values []string, pattern *regexp.Regexp, expected string) {
	for i, value := range values {
		f.match(fmt.Sprintf("%s[%d]", field, i), value, pattern, expected)
	}
}

// validate returns all faults of the recipe, each with its field.
func (r Recipe) validate() error {
	var f faults
	if r.Name != "" && !IsValidName(r.Name) {
		f.add("name", "expected lower-case letters, digits, '-' and '.', seen %q", r.Name)
	}
	if r.Architecture != "amd64" && r.Architecture != "arm64" {
		f.add("architecture", "expected amd64 or arm64, seen %q", r.Architecture)
	}
	if _, err := r.DiskBytes(); err != nil {
		f = append(f, err)
	}
	r.Debian.validate(&f)
	f.match("kernel.package", r.Kernel.Package, packagePattern, "a package such as linux-image-amd64")
	f.matchAll("kernel.arguments", r.Kernel.Arguments, argumentPattern, "one argument without spaces, quotes and signs of GRUB's language")
	for i, file := range r.Files {
		file.validate(&f, fmt.Sprintf("files[%d]", i))
	}
	for i, p := range r.Programs {
		p.validate(&f, fmt.Sprintf("programs[%d]", i))
	}
	f.matchAll("units.enable", r.Units.Enable, unitPattern, "a unit such as ssh.service")
	f.matchAll("units.disable", r.Units.Disable, unitPattern, "a unit such as ssh.service")
	f.matchAll("units.mask", r.Units.Mask, unitPattern, "a unit such as ssh.service")
	return errors.Join(f...)
}

func (d Debian) validate(f *faults) {
	if len(d.Repositories) == 0 {
		f.add("debian.repositories", "expected at least the one with the base system")
	}
	for i, r := range d.Repositories {
		r.validate(f, fmt.Sprintf("debian.repositories[%d]", i))
	}
	f.matchAll("debian.packages", d.Packages, packagePattern, "a package, or package=version")
	for i, p := range d.LocalPackages {
		if path.Ext(p) != ".deb" {
			f.add(fmt.Sprintf("debian.localPackages[%d]", i), "expected the path of a .deb, seen %q", p)
		}
	}
}

func (r Repository) validate(f *faults, field string) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.ContainsAny(r.URL, " \t\n]") {
		f.add(field+".url", "expected http(s)://server/path without a password, seen %q", r.URL)
	}
	f.match(field+".suite", r.Suite, suitePattern, "a suite such as bookworm")
	f.matchAll(field+".components", r.Components, suitePattern, "a component such as main")
	if (r.Key == "") == (r.KeyFile == "") {
		f.add(field+".key", "expected either key or keyFile: packages that nobody has signed are not installed")
	}
}

func (file File) validate(f *faults, field string) {
	validatePath(f, field+".path", file.Path)
	kinds := 0
	for _, is := range []bool{file.Content != nil, file.From != "", file.Link != "", file.Directory} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		f.add(field, "expected exactly one of content, from, link and directory, seen %d of them", kinds)
	}
	if _, err := file.Permissions(); err != nil {
		f.add(field+".mode", "%v", err)
	}
	if file.Owner != "" {
		f.match(field+".owner", file.Owner, ownerPattern, "user:group")
	}
}

// validatePath refuses paths outside of the root file system, and those on the EFI system partition, which the builder owns.
func validatePath(f *faults, field, p string) {
	switch {
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\n\x00"):
		f.add(field, "expected an absolute path without . and .., seen %q", p)
	case strings.HasPrefix(p+"/", "/boot/efi/"):
		f.add(field, "%s is on the EFI system partition, which has the boot loader only", p)
	}
}

func (p Program) validate(f *faults, field string) {
	validatePath(f, field+".path", p.Path)
	f.match(field+".module", p.Module, modulePattern, "a module's path such as k8s.io/kubernetes")
	f.match(field+".version", p.Version, goVersion, "an exact version such as v1.37.0")
	if p.Package != "" && p.Package != p.Module && !strings.HasPrefix(p.Package, p.Module+"/") {
		f.add(field+".package", "expected a package of %s, seen %q", p.Module, p.Package)
	}
	if p.LocalReplacements != "" {
		f.match(field+".localReplacements", p.LocalReplacements, goVersion, "an exact version such as v0.37.0")
	}
	f.matchAll(field+".tags", p.Tags, tagPattern, "one build tag")
	for i, flag := range p.LinkerFlags {
		// Another flag of the linker could run a program of the machine that builds.
		if !strings.HasPrefix(flag, "-X=") || strings.ContainsAny(flag, " \t\n'\"") {
			f.add(fmt.Sprintf("%s.linkerFlags[%d]", field, i), "expected -X=PACKAGE.NAME=VALUE without spaces and quotes, seen %q", flag)
		}
	}
}

// Permissions returns the mode as a number.
func (file File) Permissions() (uint32, error) {
	if file.Mode == "" {
		if file.Directory {
			return 0o755, nil
		}
		return 0o644, nil
	}
	mode, err := strconv.ParseUint(file.Mode, 8, 12)
	if err != nil {
		return 0, fmt.Errorf("expected octal digits in quotes such as \"0644\", seen %q", file.Mode)
	}
	return uint32(mode), nil
}

// DiskBytes returns the size of the disk; 0 when the recipe does not say it.
func (r Recipe) DiskBytes() (int64, error) {
	if r.Size == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(r.Size)
	if err != nil || q.Value() <= 0 {
		return 0, fmt.Errorf("size: expected a size such as 4Gi, seen %q", r.Size)
	}
	return q.Value(), nil
}
