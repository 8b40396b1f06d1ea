//go:build integration

package soak

import (
	"fmt"
	"strings"
	"time"
)

// happening is one kind of event of a round.
type happening struct {
	name string
	run  func(c *scene, round int) error
}

// happenings are the events of a round, in order.
var happenings = []happening{
	{"a definition comes, changes and goes", (*scene).definition},
	{"a PermissionSchema comes and goes", (*scene).permissionSchema},
	{"an UncoveredPermissionSet comes and goes", (*scene).uncoveredSet},
	{"a permission is taken and given", (*scene).grants},
	{"the serving certificate is replaced", (*scene).servingCertificate},
	{"the certificates of the callers are replaced", (*scene).callersCertificates},
	{"the authorizers change", (*scene).authorizers},
	{"replica stopped", func(c *scene, round int) error { return c.restart(round, false) }},
	{"replica killed", func(c *scene, round int) error { return c.restart(round, true) }},
	{away + " restarted", (*scene).apiServer},
}

// play plays rounds of events.
func (c *scene) play(begin time.Time) error {
	for round := 0; *rounds == 0 || round < *rounds; round++ {
		for _, h := range happenings {
			if !strings.Contains(h.name, *only) {
				continue
			}
			if err := c.sleep(*pause); err != nil {
				return err
			}
			if *rounds == 0 && time.Since(begin) >= *duration {
				return nil
			}
			if err := c.playOne(h, round); err != nil {
				return fmt.Errorf("round %d: %s: %w", round, h.name, err)
			}
		}
	}
	return c.sleep(*duration - time.Since(begin))
}

// playOne plays an event, which lasts until everything is as it should be.
func (c *scene) playOne(h happening, round int) error {
	begin, end := time.Now(), c.judge.during(h.name)
	if err := h.run(c, round); err != nil {
		return err
	}
	if err := c.recovered(); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	end()
	c.t.Logf("%s round %d: %s: %s; %d requests sent: %s", time.Now().Format(time.TimeOnly), round, h.name, time.Since(begin).Round(100*time.Millisecond), c.sent.Load(), c.judge.soFar())
	return nil
}
