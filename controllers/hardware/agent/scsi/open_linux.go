package scsi

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// ioctlSG is SG_IO (scsi/sg.h).
const ioctlSG = 0x2285

// Directions of a transfer (scsi/sg.h: SG_DXFER_NONE, SG_DXFER_TO_DEV, SG_DXFER_FROM_DEV).
const (
	transferNone int32 = -1
	transferOut  int32 = -2
	transferIn   int32 = -3
)

// header is struct sg_io_hdr (scsi/sg.h) of a 64-bit machine.
type header struct {
	interfaceID, direction     int32
	commandLength, senseMax    uint8
	_                          uint16
	dataLength                 uint32
	data, command, sense       uintptr
	timeoutMilliseconds, flags uint32
	packetID                   int32
	_                          uintptr
	status, masked, message    uint8
	senseLength                uint8
	hostStatus, driverStatus   uint16
	residual                   int32
	durationMilliseconds, info uint32
}

// Open returns the SCSI disk whose block device is open, or an error for a block device that is none.
func Open(device *os.File) (*Drive, error) {
	drive, err := Identify(func(c Command) error { return submit(device, c) })
	if err != nil {
		return nil, fmt.Errorf("%s is no SCSI disk: %w", device.Name(), err)
	}
	return drive, nil
}

// submit sends the command.
func submit(device *os.File, c Command) error {
	var sense [252]byte
	var pinner runtime.Pinner
	defer pinner.Unpin()
	address := func(data []byte) uintptr {
		pinner.Pin(&data[0])
		return uintptr(unsafe.Pointer(&data[0]))
	}
	raw := header{
		interfaceID: 'S', direction: transferNone, commandLength: uint8(len(c.CDB)), senseMax: uint8(len(sense)),
		command: address(c.CDB), sense: address(sense[:]), timeoutMilliseconds: uint32(c.Timeout.Milliseconds()),
	}
	switch {
	case len(c.In) > 0:
		raw.direction, raw.data, raw.dataLength = transferIn, address(c.In), uint32(len(c.In))
	case len(c.Out) > 0:
		raw.direction, raw.data, raw.dataLength = transferOut, address(c.Out), uint32(len(c.Out))
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, device.Fd(), ioctlSG, uintptr(unsafe.Pointer(&raw))); errno != 0 {
		return fmt.Errorf("SCSI command %#02x: %w", c.CDB[0], errno)
	}
	// DRIVER_SENSE (0x08) only says that there is sense data.
	if raw.status != 0 || raw.hostStatus != 0 || raw.driverStatus&^0x08 != 0 {
		return &Error{Opcode: c.CDB[0], Status: raw.status, Host: raw.hostStatus, Driver: raw.driverStatus, Sense: sense[:raw.senseLength]}
	}
	return nil
}
