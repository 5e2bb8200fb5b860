package v1alpha1

// IsOpen reports whether the attempt is wanted and has not ended.
func (w *WantedAttempt) IsOpen() bool { return w != nil && w.Outcome == "" }

// IsAgentInspection reports whether the attempt is an inspection that boots the agent.
func (w *WantedAttempt) IsAgentInspection() bool { return w != nil && w.Inspector == SourceAgent }

// Progress is what is kept of the attempt that is wanted; nil when that is nothing.
func (s *HostRecordStatus) Progress() *HostAttempt {
	if s.Wanted == nil || s.Attempt == nil || s.Attempt.Number != s.Wanted.Number {
		return nil
	}
	return s.Attempt
}

// Seen returns the latest inventory of the server: that of the attempt under way, or the one that is kept; nil: there is none.
func (s *HostRecordStatus) Seen() *HostInventory {
	if a := s.Progress(); a != nil && a.Inventory != nil && s.Wanted.IsOpen() {
		return a.Inventory
	}
	return s.Inventory
}
