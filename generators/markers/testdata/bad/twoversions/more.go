// +versionName=v2
package v1
