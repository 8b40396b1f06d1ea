// Command cmd serves package noop on a free port of 127.0.0.1, and prints its address. The arguments are the files of the certificate and
// its key. It ends when its standard input does, so that it does not outlive its caller.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/fieldperm/fieldperm/test/noop"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "noop:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) != 2 {
		return fmt.Errorf("%d arguments: give the files of the certificate and its key", len(files))
	}
	certificate, err := tls.LoadX509KeyPair(files[0], files[1])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- noop.Server(certificate).ServeTLS(listener, "", "") }()
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	return <-failed
}
