package cli

import (
	"runtime/debug"
	"testing"
)

// The version and the commit come from the linker's flags, from go install, or from a clone.
func TestStamp(t *testing.T) {
	fetched := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3", Sum: "h1:x"}}
	clone := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}
	edited := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.modified", Value: "true"}}}
	for _, tt := range []struct {
		info                      *debug.BuildInfo
		commit                    string
		wantVersion, wantRevision string
	}{
		{nil, "", "0.1.0", ""},
		{nil, "def", "0.1.0", "def"},
		{&debug.BuildInfo{}, "", "0.1.0", ""},
		{fetched, "", "1.2.3", ""},
		{clone, "", "0.1.0", "abc"},
		{clone, "def", "0.1.0", "def"},
		{edited, "", "0.1.0", "abc, modified"},
	} {
		v, c := completed("0.1.0", tt.commit, func() (*debug.BuildInfo, bool) { return tt.info, tt.info != nil })
		if v != tt.wantVersion || c != tt.wantRevision {
			t.Errorf("%v, %q: %q, %q", tt.info, tt.commit, v, c)
		}
	}
}
