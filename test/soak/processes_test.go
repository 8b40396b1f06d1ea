//go:build integration

package soak

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// tries bounds the waiting for a process on a busy machine.
const tries = 4

// restart ends a process and starts it again: of the first replica in the first round only, so that its process runs the longest from then on.
func (c *scene) restart(round int, kill bool) error {
	number := min(round, 1)
	one := c.fleet.remove(number)
	if one == nil {
		return fmt.Errorf("replica %d is not ready", number)
	}
	if kill {
		one.killed.Store(true)
		if err := c.s.SignalReplica(number, syscall.SIGKILL); err != nil {
			return err
		}
	}
	if err := c.s.StopReplica(number); err != nil {
		return err
	}
	begin := time.Now()
	if err := c.s.LaunchReplica(number); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := c.s.AwaitReplica(c.ctx, number)
		if err == nil {
			break
		}
		if try == tries || !c.s.Running(number) {
			return err
		}
		c.t.Logf("replica %d: is not ready yet: %s after its start", number, time.Since(begin))
	}
	c.fleet.add(number, strings.TrimPrefix(c.s.ReplicaURL(number), "https://"))
	c.t.Logf("replica %d is ready %s after its start", number, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// apiServer is restarted in the second round and in every fifth one after it.
func (c *scene) apiServer(round int) error {
	if round%5 != 1 && *rounds == 0 {
		return nil
	}
	if err := c.s.Shutdown(cluster.APIServer); err != nil {
		return err
	}
	if err := c.sleep(2 * time.Second); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := c.s.Boot(c.ctx, cluster.APIServer)
		if err == nil {
			break
		}
		c.t.Logf("kube-apiserver, attempt %d: %v", try, err)
		if try == tries {
			return err
		}
		if err := c.s.Shutdown(cluster.APIServer); err != nil {
			return err
		}
	}
	ready := time.Now()
	if err := c.recovered(); err != nil {
		return err
	}
	c.t.Logf("all answers are right %s after kube-apiserver was ready", time.Since(ready).Round(100*time.Millisecond))
	return nil
}
