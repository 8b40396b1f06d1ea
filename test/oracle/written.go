package oracle

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/test/exact"
)

// writing is one row of what the API server writes because of another field (D13). It says in Go what the catalogue says in its
// own words; a test holds both to the same fields.
type writing struct {
	kinds, path *regexp.Regexp
	// cause is the field whose change makes the API server write; empty for the creation of the object.
	cause []string
	// is reports whether a value is what the API server makes of the cause. Values are JSON, nil for none.
	is func(old, new, cause []byte) bool
}

const (
	workloads = `(Deployment|DaemonSet|ReplicaSet|StatefulSet)\.(apps|extensions)`
	podKinds  = `(Pod\.|PodTemplate\.|ReplicationController\.|` + workloads + `|(Job|CronJob)\.batch)`
	podSpecs  = `(\.spec|\.template\.spec|\.spec\.template\.spec|\.spec\.jobTemplate\.spec\.template\.spec)`
)

// writings are reviewed, none comes from the catalogue.
var writings = []writing{
	made(podKinds, podSpecs+`\.restartPolicy`, `"Always"`),
	made(podKinds, podSpecs+`\.schedulerName`, `"default-scheduler"`),
	made(podKinds, podSpecs+`\.securityContext`, `{}`),
	made(podKinds, podSpecs+`\.terminationGracePeriodSeconds`, `30`),
	made(`(Deployment|DaemonSet|StatefulSet)\.(apps|extensions)`, `\.spec\.revisionHistoryLimit`, `10`),
	made(`Deployment\.(apps|extensions)`, `\.spec\.progressDeadlineSeconds`, `600`),
	made(`CronJob\.batch`, `\.spec\.concurrencyPolicy`, `"Allow"`),
	made(`CronJob\.batch`, `\.spec\.failedJobsHistoryLimit`, `1`),
	made(`CronJob\.batch`, `\.spec\.successfulJobsHistoryLimit`, `3`),
	made(`Namespace\.`, `\.spec\.finalizers`, `["kubernetes"]`),
	made(`Namespace\.`, `\.status\.phase`, `"Active"`),
	made(`PersistentVolumeClaim\.`, `\.spec\.volumeMode`, `"Filesystem"`),
	made(`(PersistentVolumeClaim|Pod)\.`, `\.status\.phase`, `"Pending"`),
	made(`Service\.`, `\.spec\.internalTrafficPolicy`, `"Cluster"`),
	made(`Service\.`, `\.spec\.sessionAffinity`, `"None"`),
	{kinds: whole(`DaemonSet\.apps`), path: whole(`\.metadata\.annotations\["deprecated\.daemonset\.template\.generation"\]`), cause: []string{"spec", "template"}, is: counted},
	ofType(`\.spec\.(clusterIP|clusterIPs|ipFamilies|ipFamilyPolicy)`, func(_, new, kind []byte) bool { return string(kind) == `"ExternalName"` && new == nil }),
	ofType(`\.spec\.ports\[.*\]\.nodePort`, func(_, new, kind []byte) bool {
		return new == nil && (string(kind) == `"ClusterIP"` || string(kind) == `"ExternalName"`)
	}),
	ofType(`\.spec\.(loadBalancerClass|healthCheckNodePort)`, func(_, new, kind []byte) bool { return new == nil && string(kind) != loadBalancer }),
	ofType(`\.status\.loadBalancer`, func(_, new, kind []byte) bool {
		return (new == nil || string(new) == "{}") && string(kind) != loadBalancer
	}),
	ofType(`\.spec\.allocateLoadBalancerNodePorts`, func(old, new, kind []byte) bool {
		if string(kind) == loadBalancer {
			return old == nil && string(new) == "true"
		}
		return new == nil
	}),
	ofType(`\.spec\.externalTrafficPolicy`, func(old, new, kind []byte) bool {
		if string(kind) == loadBalancer || string(kind) == `"NodePort"` {
			return old == nil && string(new) == `"Cluster"`
		}
		return new == nil
	}),
}

const loadBalancer = `"LoadBalancer"`

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile("^(" + pattern + ")$") }

// made is a row of what a new object is given.
func made(kinds, path, value string) writing {
	return writing{kinds: whole(kinds), path: whole(path), is: func(_, new, _ []byte) bool { return string(new) == value }}
}

// ofType is a row of what the type of a Service brings, and takes away.
func ofType(path string, is func(old, new, kind []byte) bool) writing {
	return writing{kinds: whole(`Service\.`), path: whole(path), cause: []string{"spec", "type"}, is: is}
}

// counted: every change of the template raises the count by one, which begins at one.
func counted(old, new, _ []byte) bool {
	number := func(raw []byte) (int, error) { return strconv.Atoi(strings.Trim(string(raw), `"`)) }
	is, err := number(new)
	if old == nil {
		return err == nil && is == 1
	}
	was, err2 := number(old)
	return err == nil && err2 == nil && is == was+1
}

func (w *writing) about(kind, path string) bool {
	return w.kinds.MatchString(kind) && w.path.MatchString(path)
}

// written reports whether the API server has made a change because of another field (D13). Nothing behind a barrier is free.
func written(c exact.Change) bool {
	if c.Barred {
		return false
	}
	for i := range writings {
		w := &writings[i]
		if !w.about(c.Kind.Kind+"."+c.Kind.Group, c.Path) {
			continue
		}
		var cause []byte
		if w.cause == nil && !c.Create {
			continue
		}
		if w.cause != nil {
			before, after := c.Field(w.cause...)
			if bytes.Equal(before, after) {
				continue
			}
			cause = after
		}
		if w.is(c.Old(), c.New(), cause) {
			return true
		}
	}
	return false
}
