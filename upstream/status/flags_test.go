package status

import "testing"

func TestFlagTexts(t *testing.T) {
	want := []struct {
		f        Flags
		text     string
		health   Health
		excluded bool
	}{
		{0x01, "/failed_active_hc", Unhealthy, false},
		{0x02, "/failed_outlier_check", Unhealthy, false},
		{0x04, "/failed_eds_health", Unhealthy, false},
		{0x08, "/degraded_active_hc", Degraded, false},
		{0x10, "/degraded_eds_health", Degraded, false},
		{0x20, "/pending_dynamic_removal", Healthy, false},
		{0x40, "/pending_active_hc", Healthy, true},
		{0x80, "/excluded_via_immediate_hc_fail", Healthy, true},
		{0x100, "/active_hc_timeout", Healthy, false},
		{0x200, "/eds_status_draining", Unhealthy, true},
	}
	all := ""
	for _, w := range want {
		if w.f.String() != w.text || w.f.Health() != w.health || w.f.Excluded() != w.excluded {
			t.Errorf("%#x: %s, health %d, excluded %t; want %s, %d, %t", uint32(w.f), w.f, w.f.Health(), w.f.Excluded(), w.text, w.health, w.excluded)
		}
		all += w.text
	}
	if got := Flags(0x3ff).String(); got != all {
		t.Errorf("all flags: %s", got)
	}
	if Flags(0).String() != "healthy" {
		t.Errorf("no flag: %s", Flags(0))
	}
	if (FailedActiveHC | DegradedEDSHealth).Health() != Unhealthy {
		t.Error("degraded hides unhealthy")
	}
}
