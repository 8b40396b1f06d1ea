package tighten

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Subject is a user, a group or a ServiceAccount, in the way of the subjects of a RoleBinding. The zero Subject matches no write.
type Subject struct {
	// Kind is rbacv1.UserKind, GroupKind or ServiceAccountKind.
	Kind string
	// Namespace of a ServiceAccount.
	Namespace string
	Name      string
}

// ParseSubject reads a subject of the command line: the name of a user, system:serviceaccount:NAMESPACE:NAME, or group:NAME. user:NAME
// is a user whose name begins like one of the other forms. A user with the name of a ServiceAccount is the ServiceAccount.
func ParseSubject(text string) (Subject, error) {
	kind, name := rbacv1.UserKind, text
	if rest, ok := strings.CutPrefix(text, "group:"); ok {
		kind, name = rbacv1.GroupKind, rest
	} else if rest, ok := strings.CutPrefix(text, "user:"); ok {
		name = rest
	}
	if kind == rbacv1.UserKind && strings.HasPrefix(name, serviceaccount.ServiceAccountUsernamePrefix) {
		namespace, account, err := serviceaccount.SplitUsername(name)
		if err != nil {
			return Subject{}, fmt.Errorf("subject %q is no ServiceAccount: write system:serviceaccount:NAMESPACE:NAME", text)
		}
		return Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}, nil
	}
	if name == "" {
		return Subject{}, errors.New("subject has no name: give a user, system:serviceaccount:NAMESPACE:NAME or group:NAME")
	}
	if kind == rbacv1.GroupKind && name == user.SystemPrivilegedGroup {
		return Subject{}, fmt.Errorf("subject %q passes authorization without RBAC: no role can be taken from it", text)
	}
	return Subject{Kind: kind, Name: name}, nil
}

// String returns the subject as ParseSubject takes it.
func (s Subject) String() string {
	switch s.Kind {
	case rbacv1.GroupKind:
		return "group:" + s.Name
	case rbacv1.ServiceAccountKind:
		return serviceaccount.MakeUsername(s.Namespace, s.Name)
	}
	if strings.HasPrefix(s.Name, "group:") || strings.HasPrefix(s.Name, "user:") {
		return "user:" + s.Name
	}
	return s.Name
}

// Username returns the name by which requests of the subject are made, "" for a group.
func (s Subject) Username() string {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name
	case rbacv1.ServiceAccountKind:
		return serviceaccount.MakeUsername(s.Namespace, s.Name)
	}
	return ""
}

// Groups returns the groups that the API server gives the subject by itself. Those of a user come from its authentication.
func (s Subject) Groups() []string {
	switch s.Kind {
	case rbacv1.UserKind:
		return []string{user.AllAuthenticated}
	case rbacv1.ServiceAccountKind:
		return append(serviceaccount.MakeGroupNames(s.Namespace), user.AllAuthenticated)
	}
	return nil
}

// Made reports whether a user with these groups is the subject, or belongs to it.
func (s Subject) Made(username string, groups []string) bool {
	if s.Kind == rbacv1.GroupKind {
		return slices.Contains(groups, s.Name)
	}
	return s.Name != "" && username == s.Username()
}

// RBAC returns the subject as a binding names it.
func (s Subject) RBAC() rbacv1.Subject {
	out := rbacv1.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
	if s.Kind != rbacv1.ServiceAccountKind {
		out.APIGroup = rbacv1.GroupName
	}
	return out
}

// names reports whether a subject of a binding in a namespace, "" for a ClusterRoleBinding, is this subject and nothing more.
func (s Subject) names(named *rbacv1.Subject, namespace string) bool {
	switch named.Kind {
	case rbacv1.GroupKind:
		return s.Kind == rbacv1.GroupKind && named.Name == s.Name
	case rbacv1.UserKind:
		return s.Kind != rbacv1.GroupKind && named.Name == s.Username()
	case rbacv1.ServiceAccountKind:
		if named.Namespace != "" {
			namespace = named.Namespace
		}
		return s.Kind != rbacv1.GroupKind && namespace != "" && serviceaccount.MatchesUsername(namespace, named.Name, s.Username())
	}
	return false
}

// ID returns a short text that no other subject has, for the labels and the names of objects.
func (s Subject) ID() string {
	sum := sha256.Sum256([]byte(s.Kind + "\x00" + s.Namespace + "\x00" + s.Name))
	return hex.EncodeToString(sum[:8])
}

// shortID is long enough for names of objects.
func (s Subject) shortID() string { return s.ID()[:8] }

// nameLength keeps names of objects readable.
const nameLength = 100

// objectName returns the name of an object about the subject: readable, and unique by its end.
func (s Subject) objectName(prefix string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for _, c := range strings.ToLower(s.Namespace + "-" + s.Name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if text := b.String(); text[len(text)-1] != '-' {
			b.WriteByte('-')
		}
		if b.Len() > nameLength {
			break
		}
	}
	return strings.Trim(b.String(), "-") + "-" + s.shortID()
}
