package rollout

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// fleet returns a rollout in the middle: a third has moved, up to 499 Machines are in progress, the others wait, in pools of a thousand.
func fleet(size int) Facts {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	f := Facts{Clock: watched.Clock{Now: now}, Rollout: Rollout{Name: "r-1", From: rendered("old"), To: rendered("new")}, Policy: NewPolicy(nil), Pools: map[types.NamespacedName]Pool{}}
	for i := range size {
		pool := types.NamespacedName{Namespace: "tenant", Name: fmt.Sprintf("pool-%03d", i/1000)}
		f.Pools[pool] = Pool{}
		m := Machine{
			Namespace: "tenant", Name: fmt.Sprintf("%s-%d", pool.Name, i), Pool: pool, Installed: rendered("old"), Phase: v1alpha1.MachineReady,
			Ready: true, ReadySince: now.Add(-time.Hour), Claimed: true,
		}
		switch {
		case i%3 == 0:
			m.Labeled, m.Desired, m.Installed = true, rendered("new"), rendered("new")
		case i%200 == 1 && len(f.Rollout.Status.InProgress) < maxInProgress-1:
			m.Labeled, m.Desired, m.Phase, m.Ready = true, rendered("new"), v1alpha1.MachineDraining, false
			f.Rollout.Status.InProgress = append(f.Rollout.Status.InProgress, m.key().String())
		}
		f.Machines = append(f.Machines, m)
	}
	since := now.Add(-time.Hour)
	f.Rollout.Status.Phase, f.Rollout.Status.BakedSince = v1alpha1.RolloutRolling, microTime(since)
	return f
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		f := fleet(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := Plan(f); d.Status.Targets.Total == 0 {
					b.Fatal("nothing was planned")
				}
			}
		})
	}
}

func microTime(t time.Time) *metav1.MicroTime {
	at := metav1.NewMicroTime(t)
	return &at
}
