package reload

import (
	"os"
	"syscall"
	"testing"
)

// Whatever happens to a file, Fault does not block, and the file's replacement is read.
func TestFileThatBecomesAPipeDoesNotBlock(t *testing.T) {
	for _, name := range []string{"file", "kubeconfig"} {
		t.Run(name, func(t *testing.T) {
			s := watch(t, soon, "first", []string{"kubeconfig"}, nil)
			if err := os.Remove(s.path(name)); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(s.path(name), 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "file" {
				if err := s.expect(""); err == nil {
					t.Error("a pipe is read")
				}
			} else if err := s.expect("first"); err != nil {
				t.Errorf("the contents of a file that is named are not its concern: %v", err)
			}
			_ = s.Fault()
			s.write("next", "second")
			if err := os.Rename(s.path("next"), s.path(name)); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool {
				select {
				case a := <-s.attempts:
					return a.err == nil && (name == "kubeconfig" || a.data == "second")
				default:
					return false
				}
			})
		})
	}
}
