package corpus

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The scenarios' denials and errors are expected.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
