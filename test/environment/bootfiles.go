package environment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
)

// WriteBootFiles makes what servers boot to be installed: the agent's ramdisk, and a kernel that is none. A simulated server
// has no processor for a kernel to run on; it fetches one all the same.
func (w *World) WriteBootFiles() error {
	path, err := w.Program("ingot-agent")
	if err != nil {
		return err
	}
	boot := filepath.Join(w.Dir, "boot")
	if err := errors.Join(os.MkdirAll(boot, 0o755), os.WriteFile(filepath.Join(boot, "vmlinuz"), []byte("simulated"), 0o600)); err != nil {
		return fmt.Errorf("make the boot folder: %w", err)
	}
	if err := writeRamdisk(path, filepath.Join(boot, "agent.cpio.zst")); err != nil {
		return fmt.Errorf("make the ramdisk: %w", err)
	}
	return nil
}

func writeRamdisk(agent, path string) error {
	program, err := os.Open(agent)
	if err != nil {
		return err
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(ramdisk.Write(out, program, info.Size()), out.Close())
}
