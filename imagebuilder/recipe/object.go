package recipe

import (
	"cmp"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NoServer stands in the object's URL for a server that was not named.
const NoServer = "https://set-the-url.invalid"

// Name is the name of an image that was given none: the operating system and its version.
func (m Manifest) Name() string {
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(m.OS.ID+"-"+m.OS.Version), "-"), "-.")
}

var (
	notName = regexp.MustCompile(`[^a-z0-9.-]+`)
	isName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// ValidName says whether an OSImage and a file can have this name and 12 digits behind it.
func ValidName(name string) bool { return len(name) <= 200 && isName.MatchString(name) }

// FileName names an image by its digest, so that a server never serves other bytes under a name that someone has.
func FileName(name, sha256 string) string { return name + "-" + sha256[:12] + ".raw.zst" }

// Object is the OSImage to apply. An empty urlBase becomes NoServer.
func (m Manifest) Object(name, urlBase, file, sha256 string) v1alpha1.OSImage {
	if urlBase == "" {
		urlBase = NoServer
	}
	return v1alpha1.OSImage{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "OSImage"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OSImageSpec{
			URL: strings.TrimSuffix(urlBase, "/") + "/" + file, Checksum: "sha256:" + sha256, Format: v1alpha1.FormatRawZstd,
			Architecture: m.Architecture, OS: m.OS,
			UserData: cmp.Or(m.UserData, v1alpha1.UserDataCloudInit), IgnitionPlatform: m.ignitionPlatform(),
			KernelArguments: m.KernelArguments, Software: m.Software,
		},
	}
}
