// Package v1 is a sample of an author's types.
// +groupName=example.com
// +versionName=v1
package v1
