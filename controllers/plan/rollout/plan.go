package rollout

// Plan decides the next step of the rollout.
func Plan(f Facts) Decision {
	return Decision{Status: f.Rollout.Status, Done: f.Rollout.Status.Phase.Settled()}
}
