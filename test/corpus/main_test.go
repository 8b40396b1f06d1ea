package corpus

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"k8s.io/klog/v2"
)

// atExit stops what tests share.
var atExit = func() error { return nil }

func TestMain(m *testing.M) {
	flag.Parse()
	// The scenarios' denials and errors are expected.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	code := m.Run()
	if err := atExit(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
