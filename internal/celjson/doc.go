// Package celjson makes CEL values of JSON without decoding it. A field is decoded when an expression reads it.
//
// CEL counts a lookup as one step, whatever the size of the list or object is. So a lookup must take about the same time in all of them: a large
// one gets an index when it has been scanned a few times, and a long text is decoded once. Whatever reads all elements, such as iteration and comparison, is linear.
//
// Start at Of, then read tree.
package celjson
