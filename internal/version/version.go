// Package version says which version of fieldperm this program is.
package version

import (
	"runtime/debug"
	"strings"

	"k8s.io/component-base/version"
)

// Built returns the version of the image, or the version of the module with its commit. It returns "" if neither was recorded.
func Built() string {
	const unknown = "v0.0.0-"
	if stamped := version.Get().GitVersion; !strings.HasPrefix(stamped, unknown) {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return ""
}
