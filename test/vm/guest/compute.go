package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The registers of QEMU's educational device (docs/specs/edu.rst), by their 32-bit words.
const (
	registerIdentity  = 0
	registerFactorial = 0x08 / 4
	registerStatus    = 0x20 / 4
	// isComputing is the bit of the status that says that the result is not there yet.
	isComputing = 1
	// identityMask is the part of the identity that does not change with the version.
	identityMask, identity = 0xffff, 0x00ed
)

// messagePath is where kubelet reads the last words of a container.
const messagePath = "/dev/termination-log"

// compute has the device compute 5!.
func compute() (err error) {
	f, err := os.OpenFile(devicePath, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	memory, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("the memory of the device: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(memory)) }()
	registers := unsafe.Slice((*uint32)(unsafe.Pointer(&memory[0])), len(memory)/4)
	if seen := atomic.LoadUint32(&registers[registerIdentity]); seen&identityMask != identity {
		return fmt.Errorf("the device says that it is %#x", seen)
	}
	atomic.StoreUint32(&registers[registerFactorial], 5)
	for atomic.LoadUint32(&registers[registerStatus])&isComputing != 0 {
		time.Sleep(time.Millisecond)
	}
	return os.WriteFile(messagePath, fmt.Appendf(nil, "5! = %d", atomic.LoadUint32(&registers[registerFactorial])), 0o644)
}
