package baremetaloperator

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1/profile"
	"k8s.io/apimachinery/pkg/api/equality"
)

// adoptSettings writes the profile and the hints for the root device into the status, and reports whether they changed.
func adoptSettings(r *round) (isChanged bool) {
	s := &r.Status
	if s.HardwareProfile == "" {
		s.HardwareProfile, isChanged = profile.DefaultProfileName, true
	}
	if hints := rootDeviceHints(r); !equality.Semantic.DeepEqual(s.Provisioning.RootDeviceHints, hints) {
		s.Provisioning.RootDeviceHints, isChanged = hints, true
	}
	return isChanged
}

func rootDeviceHints(r *round) *metal3.RootDeviceHints {
	if r.Spec.RootDeviceHints != nil {
		return r.Spec.RootDeviceHints.DeepCopy()
	}
	known, err := profile.GetProfile(r.Status.HardwareProfile)
	if err != nil {
		return &metal3.RootDeviceHints{}
	}
	return known.RootDeviceHints.DeepCopy()
}

// raid returns the RAID that the host is to have. Without one in the spec the volumes of the controller stay, and those of the software go.
func raid(r *round) *metal3.RAIDConfig {
	wanted, has := r.Spec.RAID, r.Status.Provisioning.RAID
	if wanted != nil && !equality.Semantic.DeepEqual(wanted, &metal3.RAIDConfig{}) || has == nil {
		return wanted.DeepCopy()
	}
	out := &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{}}
	if len(has.HardwareRAIDVolumes) != 0 {
		out.HardwareRAIDVolumes = has.HardwareRAIDVolumes
	}
	return out
}

// needsPreparation reports whether the host has another RAID than it is to have.
func needsPreparation(r *round) bool {
	return !equality.Semantic.DeepEqual(r.Status.Provisioning.RAID, raid(r))
}

// clearSettings removes what an installation used.
func clearSettings(r *round) {
	p := &r.Status.Provisioning
	p.RootDeviceHints, p.Firmware = nil, nil
	if p.RAID != nil {
		p.RAID.SoftwareRAIDVolumes = nil
	}
}
