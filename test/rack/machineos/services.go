package machineos

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Why a unit is not up.
var (
	errNotFound   = errors.New("unit not found")
	errMasked     = errors.New("unit is masked")
	errDependency = errors.New("dependency failed")
	errInactive   = errors.New("unit is inactive")
)

// transaction is a start of units with all that they pull in (systemd.unit(5), Requires=, Wants=, After=, Before=).
type transaction struct {
	system *System
	jobs   map[string]unitFile
	// up are those that were started well, whether they stay up or not.
	started map[string]bool
}

// start brings the units up. Why one is not is told by Failure.
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

// pull adds a unit that is not up, and what it needs and wants.
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

// link adds what enabled units have put into the unit's .requires and .wants folders.
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

// follows says whether a starts only when b has.
func (t *transaction) mustFollow(a, b string) bool {
	return slices.Contains(t.jobs[a].lists["After"], b) || slices.Contains(t.jobs[b].lists["Before"], a)
}

// order puts every unit behind those that it follows, by name where nothing is said.
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

// settle starts one unit. One that was never written is taken for the image's own, which starts and does nothing here.
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
	for _, command := range file.commands {
		if err := s.execute(words(command.text, file.environment), file.environment); err != nil && !command.mayFail {
			return fmt.Errorf("%s: %w", unit, err)
		}
	}
	return nil
}

// own is what the image's own service does.
func (s *System) runImageService(unit string) error {
	if unit == modulesLoadUnit {
		s.loadModules()
	}
	if service := s.machine.Services[unit]; service != nil {
		return service(s)
	}
	return nil
}

// Running says whether the unit was started in this boot.
func (s *System) IsRunning(unit string) bool { return s.running[unitName(unit)] }

// Failure is why the unit was not started in this boot though it should have been; nil when it was, or should not have been.
func (s *System) Failure(unit string) error { return s.failures[unitName(unit)] }
