package server

import (
	"context"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// budget bounds the bytes of the bodies that are held at the same time, and how many of them one user's requests
// hold. A small reserve is for bodies that may be canaries: a flood of reviews must not keep fieldperm from
// proving enforcement. The zero budget has no room.
type budget struct {
	// total is for reviews, reserve for canaries, perUser the most of total for the requests of one user.
	total, reserve, perUser int64

	mu             sync.Mutex
	used, reserved int64
	users          map[string]int64
}

// lease is what one request holds of a budget.
type lease struct {
	budget  *budget
	bytes   int64
	reserve bool
	user    string
}

// canaryBytes is more than the review of a canary has: two configmaps with the CAs of a cluster.
const canaryBytes = 128 << 10

func newBudget(total, perUser, reserve int64) *budget {
	return &budget{total: total, perUser: perUser, reserve: reserve, users: map[string]int64{}}
}

// take returns a lease of bytes, nil if there is no room.
func (b *budget) take(bytes int64) *lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case bytes <= b.total-b.used:
		b.used += bytes
		return &lease{budget: b, bytes: bytes}
	case bytes <= canaryBytes && bytes <= b.reserve-b.reserved:
		b.reserved += bytes
		return &lease{budget: b, bytes: bytes, reserve: true}
	}
	return nil
}

// own charges the lease to a user, once the user is known, and reports whether the user may hold it. What has
// been taken from the reserve stays there for a canary only.
func (l *lease) own(user string, canary bool) bool {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if canary {
		return true
	}
	if l.reserve || b.users[user]+l.bytes > b.perUser && b.users[user] > 0 {
		return false
	}
	l.user = user
	b.users[user] += l.bytes
	return true
}

func (l *lease) release() {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.reserve {
		b.reserved -= l.bytes
	} else {
		b.used -= l.bytes
	}
	if l.user == "" {
		return
	}
	if b.users[l.user] -= l.bytes; b.users[l.user] <= 0 {
		delete(b.users, l.user)
	}
}

// held returns the bytes that are held.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used + b.reserved
}

type leaseKey struct{}

// handler refuses, before it is read, a body for which there is no room. A body of unknown length counts as the
// longest that is allowed. kube-apiserver sends the request again after Retry-After, as long as the webhook's
// timeout lasts, and then takes it for a failure.
func (b *budget) handler(longest int64, refused func(), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bytes := r.ContentLength
		if bytes < 0 || bytes > longest {
			bytes = longest
		}
		l := b.take(bytes)
		if l == nil {
			refused()
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the reviews that are being answered hold all the memory that there is for them: try again; raise --memory-limit, or run more replicas", http.StatusTooManyRequests)
			return
		}
		defer l.release()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), leaseKey{}, l)))
	})
}

// share reports whether the user of a review may hold its body. It is for admission.Handlers.
func share(ctx context.Context, user string, canary bool) bool {
	l, ok := ctx.Value(leaseKey{}).(*lease)
	return !ok || l.own(user, canary)
}

// bodiesOfLimit is which part of the memory limit bodies may hold: a body of one byte takes up to four while it
// is compared, and schemas, buffers of connections and what is not collected yet take the rest.
const bodiesOfLimit = 8

// unknownLimit stands for a memory limit that nothing tells.
const unknownLimit = 1 << 30

// memoryLimit returns what the process may take: the flag, else GOMEMLIMIT, else nine tenths of the container's
// limit; 0 if nothing bounds it.
func memoryLimit(flag int64) int64 {
	if flag > 0 {
		return flag
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// cgroup v2 says "max" for none, v1 a number that no machine has.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && limit > 0 && limit < 1<<50 {
			return limit / 10 * 9
		}
	}
	return 0
}

// budgets are those of the endpoints.
type budgets struct{ reviews, authorize, questions *budget }

// newBudgets divides what a memory limit leaves for bodies. longest is that of an admission review, question that of others.
// /authorize and the review API have room of their own, so that reviews keep neither from being answered.
func newBudgets(limit, longest, question int64) budgets {
	if limit == 0 {
		limit = unknownLimit
	}
	total := max(limit/bodiesOfLimit, longest)
	small := max(total/8, question)
	return budgets{
		reviews:   newBudget(total, total/4, 16*canaryBytes),
		authorize: newBudget(small, small, 0),
		questions: newBudget(small, small, 0),
	}
}
