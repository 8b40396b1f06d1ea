package load

import "testing"

// BenchmarkOffline compiles every built-in kind with the catalogue.
func BenchmarkOffline(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, errs := Offline(nil); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
