package load

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/fieldperm/fieldperm/schema/compile"
)

// BenchmarkOffline compiles every built-in kind with the catalogue.
func BenchmarkOffline(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, errs := Offline(nil); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// BenchmarkCompile500CRDs compiles the JSON of 500 definitions with 200 fields each, together with every built-in kind, into a Schema.
// compile-ms is the time of the compile in milliseconds; the rest of the time is decoding.
//
// The live heap is the memory that is reachable after a garbage collection. MiB-process is the live heap before the first compile, which
// holds the data of the program and client-go's types. MiB-live is what the Schema adds to that. MiB-documents is what the source
// documents add, if a caller keeps them.
func BenchmarkCompile500CRDs(b *testing.B) {
	if _, errs := builtInDocuments(); len(errs) > 0 {
		b.Fatal(errs)
	}
	process := liveHeap()
	definitions := customDefinitions(b, 500)
	before := liveHeap()
	var compiling, alone, whole float64
	for b.Loop() {
		docs := decodeAll(b, definitions)
		decoded := b.Elapsed()
		compiled, errs := compile.Compile(docs)
		compiling += (b.Elapsed() - decoded).Seconds()
		if len(errs) > 0 {
			b.Fatal(errs)
		}
		b.StopTimer()
		whole = liveHeap()
		runtime.KeepAlive(docs)
		alone = liveHeap()
		runtime.KeepAlive(compiled)
		b.StartTimer()
	}
	runtime.KeepAlive(definitions)
	b.ReportMetric(compiling*1000/float64(b.N), "compile-ms/op")
	b.ReportMetric(process, "MiB-process")
	b.ReportMetric(alone-before, "MiB-live")
	b.ReportMetric(whole-alone, "MiB-documents")
}

func decodeAll(b *testing.B, definitions [][]byte) compile.Documents {
	b.Helper()
	builtIn, errs := builtInDocuments()
	custom := make([]compile.Documents, len(definitions))
	for i, raw := range definitions {
		var faults []error
		custom[i], faults = CRD(fmt.Sprintf("definition %d", i), raw)
		errs = append(errs, faults...)
	}
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	return builtIn.Append(custom...)
}

// liveHeap returns the size of the reachable memory in MiB.
func liveHeap() float64 {
	// A second collection frees the memory that the first left to finalizers and pools.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
