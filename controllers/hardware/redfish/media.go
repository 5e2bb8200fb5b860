package redfish

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opMedia = "set virtual media"

// mediaSlot is a slot for virtual media.
type mediaSlot struct {
	Image, ImageName string
	Inserted         *bool
	MediaTypes       []string
	Actions          struct {
		Insert struct {
			Target  string   `json:"target"`
			Schemes []string `json:"TransferProtocolType@Redfish.AllowableValues"`
		} `json:"#VirtualMedia.InsertMedia"`
		Eject struct {
			Target string `json:"target"`
		} `json:"#VirtualMedia.EjectMedia"`
	}

	uri   string
	etags []string
}

// SetVirtualMedia implements hardware.BMC.
func (b *bmc) SetVirtualMedia(ctx context.Context, imageURLs ...string) error {
	images := slices.DeleteFunc(slices.Clone(imageURLs), func(image string) bool { return image == "" })
	secret := ""
	if len(images) > 0 {
		secret = secretOfURL(images[0])
	}
	return b.callWithSecret(ctx, opMedia, secret, func(c *conn) error {
		slots, err := c.readMediaSlots()
		if err != nil {
			return err
		}
		if len(images) == 0 {
			return c.ejectOwnMedia(slots)
		}
		if slices.ContainsFunc(slots, func(slot *mediaSlot) bool { return c.hasImage(slot, images) }) {
			return nil
		}
		rest, err := c.checkInsertions(slots, images)
		if err != nil || len(rest) == 0 {
			return err
		}
		return c.insertFirst(slots, rest)
	})
}

// hasMedia reports whether an image is inserted.
func (s *mediaSlot) hasMedia() bool {
	if s.Inserted != nil {
		return *s.Inserted
	}
	return s.Image != "" || s.ImageName != ""
}

// isOwn reports whether the image in the slot is one that Ingot inserted. Some BMCs show only the last part of the URL.
func (s *mediaSlot) isOwn() bool {
	shown := s.Image
	if shown == "" {
		shown = s.ImageName
	}
	return path.Base(shown) == hardware.MediaFileName
}

// isCDSlot reports whether the slot accepts a CD or DVD image. One that does not tell may.
func (s *mediaSlot) isCDSlot() bool {
	return len(s.MediaTypes) == 0 || slices.ContainsFunc(s.MediaTypes, func(kind string) bool { return strings.EqualFold(kind, "CD") || strings.EqualFold(kind, "DVD") })
}

// hasImage reports whether one of the images is inserted in the slot. Where the BMC does not show the URL, this process must have inserted it.
//
// Without it: the BMC shows only the name of the file, a power-on is requested again because the server has not come up yet, and the image is ejected
// and inserted again while the server boots from it.
func (c *conn) hasImage(slot *mediaSlot, images []string) bool {
	if !slot.hasMedia() || !slot.isOwn() {
		return false
	}
	if strings.Contains(slot.Image, "://") {
		return slices.Contains(images, slot.Image)
	}
	known, ok := c.line().insertionAt(slot.uri)
	return ok && slices.Contains(images, known.image)
}

// ejectOwnMedia ejects the images that Ingot inserted.
func (c *conn) ejectOwnMedia(slots []*mediaSlot) error {
	for _, slot := range slots {
		if slot.hasMedia() && slot.isOwn() {
			if err := c.ejectMedia(slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// insertFirst inserts the first of the images that the BMC takes, in the first slot that takes it, after earlier images of Ingot's are ejected.
func (c *conn) insertFirst(slots []*mediaSlot, images []string) error {
	if err := c.ejectOwnMedia(slots); err != nil {
		return err
	}
	slots = slices.DeleteFunc(slots, func(slot *mediaSlot) bool { return slot.hasMedia() && !slot.isOwn() })
	if len(slots) == 0 {
		return hardware.Errorf(hardware.Conflict, opMedia, c.bmc.endpoint.Address, "virtual media have another image in every slot for a CD: eject it at the BMC")
	}
	var refused error
	for _, image := range images {
		for _, slot := range slots {
			err := c.checkScheme(slot, image)
			if err == nil {
				err = c.insertMedia(slot, image)
			}
			switch {
			case err == nil:
				return c.checkInserted(slot, image)
			case hardware.ReasonOf(err) == hardware.ReasonBootImageNotFetched:
				refused = err
			case isRefused(err), hardware.KindOf(err) == hardware.Unsupported:
				refused = cmp.Or(refused, err)
			default:
				return err
			}
		}
	}
	return refused
}

// checkScheme returns an error when the slot lists the protocols that it fetches images by, and that of the image is not one.
func (c *conn) checkScheme(slot *mediaSlot, image string) error {
	listed := slot.Actions.Insert.Schemes
	if len(listed) == 0 || firstOffered([]string{schemeOf(image)}, listed) != "" {
		return nil
	}
	hint := ""
	if firstOffered([]string{"HTTPS"}, listed) != "" {
		hint = "; the boot service has HTTPS with boot.tls.address of the manager's configuration"
	}
	return hardware.Errorf(hardware.Unsupported, opMedia, c.bmc.endpoint.Address, "the BMC fetches images by %s, needed is %s%s", strings.Join(listed, ", "), schemeOf(image), hint)
}

// schemeOf returns the protocol of a URL as Redfish names it, HTTP or HTTPS.
func schemeOf(image string) string {
	scheme, _, _ := strings.Cut(image, "://")
	return strings.ToUpper(scheme)
}

// checkInserted reads the slot again. A BMC that accepts an image and cannot fetch it reports none, at once or after a while; one that inserts in
// the background reports it later, and the caller repeats the call.
//
// Without it: the server would be powered on without the medium, and its firmware would boot the next device, which is the disk.
func (c *conn) checkInserted(slot *mediaSlot, image string) error {
	after, err := c.readMediaSlot(slot.uri)
	if err != nil {
		return err
	}
	if after.hasMedia() && after.isOwn() {
		return nil
	}
	return hardware.Errorf(hardware.Busy, opMedia, c.bmc.endpoint.Address, "the BMC has accepted the image %s and reports none in %s yet", shownURL(image), slot.uri)
}

// shownURL returns the URL of an image without its secret.
func shownURL(image string) string {
	at, err := url.Parse(image)
	if err != nil {
		return hardware.MediaFileName
	}
	return at.Scheme + "://" + at.Host + "/***/" + path.Base(at.Path)
}

// readMediaSlots returns the virtual media slots for a CD. They are below the system in newer firmware, below its manager in older.
func (c *conn) readMediaSlots() ([]*mediaSlot, error) {
	s, err := c.serverSystem()
	if err != nil {
		return nil, err
	}
	collections := []string{s.links.VirtualMedia.String()}
	for _, manager := range s.links.Links.ManagedBy.ToStrings() {
		var links struct{ VirtualMedia schemas.Link }
		if err := c.skipResourceError(getJSON(c.api, manager, &links), manager); err != nil {
			return nil, err
		}
		collections = append(collections, links.VirtualMedia.String())
	}
	var slots []*mediaSlot
	for _, collection := range collections {
		if collection == "" {
			continue
		}
		if slots, err = c.appendMediaSlots(slots, collection); err != nil {
			return nil, err
		}
	}
	if len(slots) == 0 {
		return nil, hardware.Errorf(hardware.Unsupported, opMedia, c.bmc.endpoint.Address,
			"neither the system %s nor its managers have virtual media for a CD image", s.ODataID)
	}
	return slots, nil
}

// appendMediaSlots appends the slots of a collection.
func (c *conn) appendMediaSlots(slots []*mediaSlot, collection string) ([]*mediaSlot, error) {
	members, err := c.collectionMembers(collection)
	if err := c.skipResourceError(err, collection); err != nil {
		return nil, err
	}
	for _, member := range members {
		slot, err := c.readMediaSlot(member)
		if err := c.skipResourceError(err, member); err != nil {
			return nil, err
		}
		if err == nil && slot.isCDSlot() {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

// readMediaSlot reads a slot.
func (c *conn) readMediaSlot(uri string) (slot *mediaSlot, err error) {
	slot = &mediaSlot{uri: uri}
	slot.etags, err = c.readDocument(uri, slot)
	return slot, err
}
