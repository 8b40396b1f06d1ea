package endpoint

import "testing"

// TestD13_AWriteIsFreeOrACompanion: no observed write is lost between the two.
func TestD13_AWriteIsFreeOrACompanion(t *testing.T) {
	companions := 0
	seen := map[string]bool{}
	for _, w := range Writes() {
		for _, version := range w.Versions {
			if key := w.Kind.String() + " " + version; !seen[key] {
				seen[key] = true
				companions += len(Companions(w.Kind, version))
			}
		}
	}
	all, free := 0, 0
	for _, w := range Writes() {
		all += len(w.Versions)
	}
	for _, w := range FreeWrites() {
		free += len(w.Versions)
	}
	if companions == 0 || all != free+companions {
		t.Errorf("%d writes, %d are free and %d are companions", all, free, companions)
	}
	for _, w := range Companions(Kind{Kind: "Service"}, "v1") {
		if w.Field == ".spec.ports[*].nodePort" && !w.Creates() && len(w.CausedBy()) == 1 && w.CausedBy()[0] == ".spec.type" {
			return
		}
	}
	t.Error("a change of the type of a Service has no node port beside it")
}
