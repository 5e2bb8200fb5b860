package build

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/imagebuilder/rootfs"
)

const systemUnits = "etc/systemd/system"

// unitDirs are the directories of units, in the order in which systemd prefers them (systemd.unit(5)).
var unitDirs = []string{systemUnits, "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// addUnits enables, disables and masks the units of the recipe.
func (b *builder) addUnits() error {
	for _, unit := range b.Recipe.Units.Disable {
		b.disableUnit(unit)
	}
	for _, unit := range b.Recipe.Units.Mask {
		if err := b.linkUnit(unit, "/dev/null"); err != nil {
			return err
		}
	}
	for _, unit := range b.Recipe.Units.Enable {
		if err := b.enableUnit(unit); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) enableUnit(unit string) error {
	for _, dir := range unitDirs {
		file := path.Join(dir, recipe.UnitFile(unit))
		content, err := b.tree.ReadFile(file)
		if err != nil {
			continue
		}
		links, err := recipe.UnitLinks(unit, content)
		if err != nil {
			return err
		}
		for _, l := range links {
			if err := b.linkUnit(l, "/"+file); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("units.enable: the image has no unit %s: add its package or its file", unit)
}

func (b *builder) linkUnit(name, target string) error {
	return b.tree.Add(path.Join(systemUnits, name), rootfs.File{Mode: fs.ModeSymlink | 0o777, Target: target})
}

// disableUnit removes all links that start the unit.
func (b *builder) disableUnit(unit string) {
	for _, pattern := range []string{"*.wants", "*.requires"} {
		for _, dir := range b.tree.Glob(path.Join(systemUnits, pattern)) {
			b.tree.Remove(path.Join(dir, unit))
		}
	}
	for _, name := range b.tree.Glob(path.Join(systemUnits, "*")) {
		if target, err := b.tree.ReadLink(name); err == nil && strings.HasSuffix(target, "/"+unit) {
			b.tree.Remove(name)
		}
	}
}
