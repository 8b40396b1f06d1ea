package server

import "context"

// A runner works until the context ends.
type runner interface{ Run(ctx context.Context) }

// component is a runner with its name in logs.
type component struct {
	name string
	runner
}

// signal calls its listeners when something has changed. Listeners are added before anything runs. They must not block.
type signal struct{ listeners []func() }

func (s *signal) add(listener func()) { s.listeners = append(s.listeners, listener) }

func (s *signal) send() {
	for _, f := range s.listeners {
		f()
	}
}

// OnAdd, OnUpdate and OnDelete make a signal an event handler, which reports only that something changed.
func (s *signal) OnAdd(any, bool)   { s.send() }
func (s *signal) OnUpdate(any, any) { s.send() }
func (s *signal) OnDelete(any)      { s.send() }
