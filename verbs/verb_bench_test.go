package verbs

import "testing"

func BenchmarkWithParameter(b *testing.B) {
	label, err := New("label")
	if err != nil {
		b.Fatal(err)
	}
	for name, value := range map[string]string{"plain": "app.kubernetes.io/name", "escaped": "a name (and more)", "none": ""} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := label.WithParameter(value); ok != (value != "") {
					b.Fatal(value)
				}
			}
		})
	}
}
