package probe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Finding is the result of the probes of a barrier. The zero Finding proves nothing.
type Finding struct {
	// Refused are the endpoints where every kube-apiserver refused a write by the barrier.
	Refused []string
	// Unbarred has one error for each place where a write was not refused.
	Unbarred []error
	// Unproven has one error for each endpoint with an unknown result.
	Unproven []error
}

// Of returns the stored results for a barrier. It sends no request.
func (p *Probes) Of(b Barrier) Finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out Finding
	if p.known == nil || len(p.servers) == 0 {
		return Finding{Unproven: []error{errors.New("it has not been probed yet")}}
	}
	for i := range b.Endpoints {
		e := &b.Endpoints[i]
		switch {
		case served(p.known, e):
			p.add(&out, e, &b)
		case !endpoint.BuiltIn(e.Group, e.Resource) && !p.known.Has(e.Group, e.Resource, ""):
			out.Unproven = append(out.Unproven, fmt.Errorf("%s: %w", nameOf(e, b.Operation), errElsewhere))
		}
	}
	if len(out.Refused)+len(out.Unbarred)+len(out.Unproven) == 0 {
		out.Unproven = []error{errors.New("not probed, because nothing that it names is served and stored here yet")}
	}
	return out
}

func (p *Probes) add(out *Finding, e *endpoint.Endpoint, b *Barrier) {
	refused, name := true, nameOf(e, b.Operation)
	for _, server := range p.servers {
		last, probed := p.results[place{server, requestOf(b, e)}]
		var err error
		switch {
		case !probed:
			err = fmt.Errorf("%s: has not been probed on %s yet", name, server)
		case errors.Is(last.err, interlock.ErrUnbarred):
			out.Unbarred, refused = append(out.Unbarred, last.err), false
			continue
		case last.err != nil:
			err = last.err
		case !slices.Contains(last.holds, b.Name):
			err = fmt.Errorf("%s: a replica of fieldperm does not know the barrier yet", name)
		}
		if err == nil {
			continue
		}
		if refused {
			out.Unproven = append(out.Unproven, err) // One server is enough for the message.
		}
		refused = false
	}
	if refused {
		out.Refused = append(out.Refused, name)
	}
}
