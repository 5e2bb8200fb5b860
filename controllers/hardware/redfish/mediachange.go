package redfish

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	paramImage    = "Image"
	paramInserted = "Inserted"
	paramProtect  = "WriteProtected"
	paramProtocol = "TransferProtocolType"
	paramMethod   = "TransferMethod"
	actionEject   = "/Actions/VirtualMedia.EjectMedia"
)

// insertForms are the parameters beside the image, in the order in which they are tried. BMCs refuse what they do not know, and some demand the
// protocol or the method (r sushy).
var insertForms = [][]string{
	{paramInserted, paramProtect}, {paramInserted, paramProtect, paramProtocol, paramMethod}, {paramProtocol, paramMethod}, {paramProtocol}, {},
}

// insertPayload returns the parameters of an insertion.
func insertPayload(image string, form []string) map[string]any {
	all := map[string]any{paramInserted: true, paramProtect: true, paramProtocol: schemeOf(image), paramMethod: "Stream"}
	maps.DeleteFunc(all, func(name string, _ any) bool { return !slices.Contains(form, name) })
	all[paramImage] = image
	return all
}

// insertMedia has the slot insert the image, and keeps that it was asked to.
func (c *conn) insertMedia(slot *mediaSlot, image string) error {
	var err error
	for _, form := range insertForms {
		var accepted acceptance
		accepted, err = c.sendInsertion(slot, insertPayload(image, form))
		if hasMessage(err, keyMediaAttached) {
			// iDRAC may have media attached although the slot reports that nothing is inserted.
			if err := c.ejectMedia(slot); err != nil {
				return err
			}
			accepted, err = c.sendInsertion(slot, insertPayload(image, form))
		}
		switch {
		case err == nil:
			c.line().keepInsertion(slot.uri, insertion{image: image, monitor: accepted.monitor, at: c.bmc.client.options.Clock()})
			return nil
		case isNotFetched(err):
			return c.notFetchedError(image, err)
		case !isRefused(err) || hasMessage(err, licenceKeys...):
			return err
		}
	}
	return err
}

// sendInsertion sends an insertion by the action, or by PATCH where there is none or it is listed and does not exist.
func (c *conn) sendInsertion(slot *mediaSlot, payload map[string]any) (acceptance, error) {
	target := slot.Actions.Insert.Target
	if target == "" {
		return c.patchAccepted(slot.uri, slot.etags, payload)
	}
	accepted, err := c.post(target, payload)
	if !isMissing(err) {
		return accepted, err
	}
	accepted, patchErr := c.patchAccepted(slot.uri, slot.etags, payload)
	if isMissing(patchErr) {
		return acceptance{}, err
	}
	return accepted, patchErr
}

// ejectMedia ejects the image in every way that a BMC is known to take, until the slot is empty. It counts what the slot reports and not the answer:
// iDRAC shows one device in two slots, and refuses to eject at the second what was ejected at the first.
func (c *conn) ejectMedia(slot *mediaSlot) error {
	var refused error
	for _, eject := range c.ejectForms(slot) {
		err := eject()
		if err != nil && !isRefused(err) && !isMissing(err) {
			return err
		}
		refused = cmp.Or(refused, err)
		after, err := c.readMediaSlot(slot.uri)
		if err != nil {
			return err
		}
		if !after.hasMedia() || !after.isOwn() {
			*slot = *after
			c.line().dropInsertion(slot.uri)
			return nil
		}
		slot.etags = after.etags
	}
	if refused != nil {
		return refused
	}
	return hardware.Errorf(hardware.Busy, opMedia, c.bmc.endpoint.Address, "the BMC has accepted to eject the image and still reports it in %s: when it stays, eject it at the BMC", slot.uri)
}

// ejectForms returns the ways to eject an image, in the order in which they are tried: by the action, with a body and without, and by PATCH. A slot
// without the action may have it nevertheless.
func (c *conn) ejectForms(slot *mediaSlot) []func() error {
	target := cmp.Or(slot.Actions.Eject.Target, strings.TrimRight(slot.uri, "/")+actionEject)
	act := func(payload any) func() error {
		return func() error { _, err := c.post(target, payload); return err }
	}
	patch := func(payload map[string]any) func() error {
		return func() error { return c.patch(slot.uri, slot.etags, payload) }
	}
	byAction := []func() error{act(map[string]any{}), act(nil)}
	byPatch := []func() error{patch(map[string]any{paramImage: nil, paramInserted: false}), patch(map[string]any{paramImage: nil}), patch(map[string]any{paramInserted: false})}
	if slot.Actions.Eject.Target == "" {
		return append(byPatch, byAction...)
	}
	return append(byAction, byPatch...)
}

// post sends an action; a nil payload is no body. It has no If-Match, which iDRAC10 refuses on actions.
func (c *conn) post(target string, payload any) (acceptance, error) {
	resp, err := c.api.Post(target, payload)
	if err != nil {
		return acceptance{}, err
	}
	return acceptanceOf(resp), nil
}

// keyMediaAttached is the message with which iDRAC refuses an insertion because other media are attached.
const keyMediaAttached = "VRM0021"

// licenceKeys are the messages with which BMCs refuse virtual media for want of a licence: of HPE, Dell and Supermicro.
var licenceKeys = []string{"LicenseKeyRequired", "LIC501", "OemLicenseNotPassed", "LicenseRequired"}

// isNotFetched reports whether the BMC refused an image because it could not fetch it, by a message of the Base registry (DSP8011).
func isNotFetched(err error) bool {
	return hasMessage(err, "CouldNotEstablishConnection", "SourceDoesNotSupportProtocol", "ResourceAtUriUnauthorized", "ResourceAtUriInUnknownFormat")
}

// notFetchedError returns the error for an image that the BMC could not fetch. cause says what the BMC said; nil: nothing.
func (c *conn) notFetchedError(image string, cause error) error {
	said := "the BMC has accepted it and reports none"
	var refused *refusal
	if errors.As(cause, &refused) {
		said = "the BMC says: " + refused.Error()
	} else if cause != nil {
		said = "the BMC says: " + cause.Error()
	}
	failed := hardware.Errorf(hardware.Busy, opMedia, c.bmc.endpoint.Address, "expected the image %s to be inserted, %s: the BMC fetches it itself, so look whether the BMC's own network leads to that address "+
		"and port (route, firewall, name server)", shownURL(image), said)
	failed.Reason = hardware.ReasonBootImageNotFetched
	return failed
}
