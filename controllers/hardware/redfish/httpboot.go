package redfish

import (
	"context"
	"path"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opUnpin = "take out the URL for UEFI HTTP boot"

// SetPinnedBootOnce implements hardware.BMC. The URI and the override are sent in one request: sushy-tools makes Pxe of UefiHttp without a URI, and
// between two requests a server could boot by HTTP from what DHCP names.
func (b *bmc) SetPinnedBootOnce(ctx context.Context, programURL string) error {
	return b.setPinnedBoot(ctx, programURL, onceFirst)
}

// SetPinnedBootAlways implements hardware.BMC.
func (b *bmc) SetPinnedBootAlways(ctx context.Context, programURL string) error {
	return b.setPinnedBoot(ctx, programURL, alwaysFirst)
}

func (b *bmc) setPinnedBoot(ctx context.Context, programURL string, enabled []string) error {
	if path.Base(programURL) != hardware.PinnedFileName {
		return hardware.Errorf(hardware.Invalid, opBoot, b.endpoint.Address, "the last part of the URL must be %s", hardware.PinnedFileName)
	}
	return b.callWithSecret(ctx, opBoot, secretOfURL(programURL), func(c *conn) error {
		return c.setBoot(hardware.BootPinned, programURL, enabled)
	})
}

// secretOfURL returns the part of the URL of an image that must not be shown. It is before the name of the file.
func secretOfURL(imageURL string) string {
	if imageURL == "" {
		return ""
	}
	return path.Base(path.Dir(imageURL))
}

// ClearPinnedBoot implements hardware.BMC. A BMC that refuses null gets an empty text.
func (b *bmc) ClearPinnedBoot(ctx context.Context) error {
	return b.call(ctx, opUnpin, func(c *conn) error {
		place, err := c.findBootPlace()
		if err != nil {
			return err
		}
		o := place.withURI()
		if o == nil || !o.hasOwnURI() {
			return nil
		}
		for _, empty := range []any{nil, ""} {
			err := c.patch(o.uri, o.etags, map[string]any{"Boot": map[string]any{memberHTTPURI: empty}})
			if err != nil && !isRefused(err) {
				return err
			}
			after, err := c.readBootObject(o.uri)
			if err != nil {
				return err
			}
			if after == nil || !after.hasOwnURI() {
				return nil
			}
			o = after
		}
		return hardware.Errorf(hardware.Unsupported, opUnpin, b.endpoint.Address, "the BMC keeps the URL in %s, which ends with its attempt: remove it there", memberHTTPURI)
	})
}

// withURI returns the resource that has the URI for UEFI HTTP boot: the one that is changed, or else the other one; nil when neither has.
func (p bootPlace) withURI() *bootObject {
	for _, o := range []*bootObject{p.home, p.other} {
		if o != nil && o.hasMember(memberHTTPURI) {
			return o
		}
	}
	return nil
}

// hasOwnURI reports whether the URI is one that Ingot has pinned.
func (o *bootObject) hasOwnURI() bool {
	return path.Base(o.text(memberHTTPURI)) == hardware.PinnedFileName
}
