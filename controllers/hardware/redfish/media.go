package redfish

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opMedia = "set virtual media"

// SetVirtualMedia implements hardware.BMC.
func (b *bmc) SetVirtualMedia(ctx context.Context, imageURL string) error {
	return b.call(ctx, opMedia, func(c *conn) error {
		slot, err := c.findMediaSlot()
		if err != nil {
			return err
		}
		hasMedia := slot.Image != ""
		if slot.Inserted != nil {
			hasMedia = *slot.Inserted
		}
		if imageURL == "" {
			if !hasMedia {
				return nil
			}
			return c.ejectMedia(slot)
		}
		if hasMedia && slot.Image == imageURL {
			return nil
		}
		if hasMedia {
			if err := c.ejectMedia(slot); err != nil {
				return err
			}
		}
		return c.insertMedia(slot, imageURL)
	})
}

// findMediaSlot returns the first virtual media slot for a CD. It is below the system in newer firmware, below its manager in older.
func (c *conn) findMediaSlot() (*schemas.VirtualMedia, error) {
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
	for _, collection := range collections {
		if collection == "" {
			continue
		}
		collectionMembers, err := c.collectionMembers(collection)
		if err := c.skipResourceError(err, collection); err != nil {
			return nil, err
		}
		for _, member := range collectionMembers {
			slot, err := schemas.GetObject[schemas.VirtualMedia](c.api, member)
			if err := c.skipResourceError(err, member); err != nil {
				return nil, err
			}
			if err == nil && isCDSlot(slot) {
				slot.ODataID = member
				return slot, nil
			}
		}
	}
	return nil, hardware.Errorf(hardware.Unsupported, opMedia, c.bmc.endpoint.Address,
		"neither the system %s nor its managers have virtual media for a CD image", s.ODataID)
}

// isCDSlot reports whether the slot accepts a CD or DVD image.
func isCDSlot(slot *schemas.VirtualMedia) bool {
	return slices.Contains(slot.MediaTypes, schemas.CDVirtualMediaType) || slices.Contains(slot.MediaTypes, schemas.DVDVirtualMediaType)
}

// mediaActionTargets returns the targets of the actions, which gofish does not export. A slot without them is changed with PATCH.
func mediaActionTargets(slot *schemas.VirtualMedia) (insertMedia, ejectMedia string) {
	var links struct {
		Actions struct {
			Insert struct {
				Target string `json:"target"`
			} `json:"#VirtualMedia.InsertMedia"`
			Eject struct {
				Target string `json:"target"`
			} `json:"#VirtualMedia.EjectMedia"`
		}
	}
	if err := json.Unmarshal(slot.RawData, &links); err != nil {
		return "", "" // gofish has parsed the resource; unexpected types are treated as a missing action
	}
	return links.Actions.Insert.Target, links.Actions.Eject.Target
}

func (c *conn) ejectMedia(slot *schemas.VirtualMedia) error {
	_, target := mediaActionTargets(slot)
	if target == "" {
		return slot.Patch(slot.ODataID, map[string]any{"Image": nil, "Inserted": false})
	}
	resp, err := c.api.Post(target, map[string]any{})
	if err != nil {
		return err
	}
	schemas.DeferredCleanupHTTPResponse(resp)
	return nil
}

func (c *conn) insertMedia(slot *schemas.VirtualMedia, imageURL string) error {
	target, _ := mediaActionTargets(slot)
	payload := map[string]any{"Image": imageURL, "Inserted": true, "WriteProtected": true}
	if target == "" {
		return slot.Patch(slot.ODataID, payload)
	}
	resp, err := c.api.Post(target, payload)
	if err != nil && isMediaAttachedError(err) {
		// iDRAC may have media attached (VRM0021) although the slot reports that nothing is inserted.
		if err := c.ejectMedia(slot); err != nil {
			return err
		}
		resp, err = c.api.Post(target, payload)
	}
	if err != nil {
		return err
	}
	schemas.DeferredCleanupHTTPResponse(resp)
	return nil
}

// isMediaAttachedError reports whether the BMC refused because other media are attached.
func isMediaAttachedError(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusConflict, http.StatusInternalServerError:
	default:
		return false
	}
	return hasMessage(err, "VRM0021")
}
