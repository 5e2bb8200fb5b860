package machineos

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Reasons why a unit has not started.
var (
	errNotFound   = errors.New("unit not found")
	errMasked     = errors.New("unit is masked")
	errDependency = errors.New("dependency failed")
	errInactive   = errors.New("unit is inactive")
)

// transaction starts units with all units that they pull in (systemd.unit(5), Requires=, Wants=, After=, Before=).
type transaction struct {
	system *System
	jobs   map[string]unitFile
	// started are the units that started without an error, whether they stay active or not.
	started map[string]bool
}

// startUnits starts the units and records the errors of those that fail, for Failure.
func (s *System) startUnits(units ...string) {
	t := transaction{system: s, jobs: map[string]unitFile{}, started: map[string]bool{}}
	for _, unit := range units {
		t.add(unit)
	}
	for _, unit := range t.order() {
		delete(s.running, unit)
		delete(s.failures, unit)
		if err := t.startUnit(unit); err != nil {
			s.failures[unit] = err
			continue
		}
		t.started[unit] = true
		if file := t.jobs[unit]; !file.oneshot || file.remains {
			s.running[unit] = true
		}
	}
}

// add adds a unit that is not active, and the units that it requires and wants.
func (t *transaction) add(unit string) {
	if _, there := t.jobs[unit]; there || t.system.running[unit] {
		return
	}
	file := t.system.loadUnit(unit, "")
	t.system.addEnabledUnits(&file, unit)
	t.jobs[unit] = file
	for _, other := range slices.Concat(file.lists["Requires"], file.lists["Wants"]) {
		t.add(other)
	}
}

// addEnabledUnits adds the enabled units that name this unit in RequiredBy or WantedBy.
func (s *System) addEnabledUnits(file *unitFile, unit string) {
	for _, other := range slices.Sorted(maps.Keys(s.Enabled)) {
		written, ok := s.Files[unitDirectory+other]
		if !ok {
			continue
		}
		install := unitFile{environment: map[string]string{}, lists: map[string][]string{}}
		s.parseUnit(&install, string(written.Content))
		for list, into := range map[string]string{"RequiredBy": "Requires", "WantedBy": "Wants"} {
			if slices.Contains(install.lists[list], unit) {
				file.lists[into] = append(file.lists[into], other)
			}
		}
	}
}

// mustFollow reports whether a starts only after b.
func (t *transaction) mustFollow(a, b string) bool {
	return slices.Contains(t.jobs[a].lists["After"], b) || slices.Contains(t.jobs[b].lists["Before"], a)
}

// order sorts the units so that each comes after those that it must follow, and otherwise by name.
func (t *transaction) order() []string {
	var (
		out     []string
		visited = map[string]bool{}
		visit   func(unit string)
		all     = slices.Sorted(maps.Keys(t.jobs))
	)
	visit = func(unit string) {
		if visited[unit] {
			return // done, or a cycle, which systemd breaks too
		}
		visited[unit] = true
		for _, other := range all {
			if t.mustFollow(unit, other) {
				visit(other)
			}
		}
		out = append(out, unit)
	}
	for _, unit := range all {
		visit(unit)
	}
	return out
}

// startUnit starts one unit. A unit without a file is the image's own, which starts and does nothing here.
func (t *transaction) startUnit(unit string) error {
	s, file := t.system, t.jobs[unit]
	if slices.Contains(s.machine.Missing, unit) {
		return fmt.Errorf("%s: %w", unit, errNotFound)
	}
	if s.Masked[unit] {
		return fmt.Errorf("%s: %w", unit, errMasked)
	}
	for _, needed := range file.lists["Requires"] {
		// Without an order both start at the same time, and the one's failure comes too late for the other.
		if !t.started[needed] && !s.running[needed] && (t.mustFollow(unit, needed) || s.Masked[needed]) {
			return fmt.Errorf("%s: %w: %s: %w", unit, errDependency, needed, cmp.Or(s.failures[needed], errMasked))
		}
	}
	if err := s.runImageService(unit); err != nil {
		return fmt.Errorf("%s: %w", unit, err)
	}
	if err := s.executeAll(unit, file.before, file.environment); err != nil {
		return err
	}
	environment := file.environment
	if len(file.before) > 0 {
		// The files of the environment are read again before each command: what ran before may have written them.
		environment = s.loadUnit(unit, "").environment
	}
	return s.executeMain(unit, file, environment)
}

// executeMain runs the commands of ExecStart=. systemctl does not wait for the end of a simple service, which systemd may start again.
func (s *System) executeMain(unit string, file unitFile, environment map[string]string) error {
	err := s.executeAll(unit, file.commands, environment)
	if err != nil && file.restarts && !file.oneshot {
		s.restarting = append(s.restarting, unit)
		return nil
	}
	return err
}

// restartServices starts services again that failed and that systemd restarts: once, when everything else runs.
func (s *System) restartServices() {
	again := s.restarting
	s.restarting = nil
	for _, unit := range again {
		file := s.loadUnit(unit, "")
		if err := s.executeAll(unit, file.commands, file.environment); err != nil {
			s.failures[unit] = err
		}
	}
}

// executeAll runs the commands of a unit, until one fails that may not.
func (s *System) executeAll(unit string, commands []startCommand, environment map[string]string) error {
	for _, command := range commands {
		if err := s.execute(words(command.text, environment), environment); err != nil && !command.mayFail {
			return fmt.Errorf("%s: %w", unit, err)
		}
	}
	return nil
}

// runImageService performs the effect of a service of the image.
func (s *System) runImageService(unit string) error {
	if unit == modulesLoadUnit {
		s.loadModules()
	}
	if service := s.machine.Services[unit]; service != nil {
		return service(s)
	}
	return nil
}

// IsRunning reports whether the unit is active.
func (s *System) IsRunning(unit string) bool { return s.running[unitName(unit)] }

// Failure returns why the unit failed to start in this boot. It returns nil when it started or was not to start.
func (s *System) Failure(unit string) error { return s.failures[unitName(unit)] }
