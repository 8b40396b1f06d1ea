// Package reload follows a configuration file and the files that it names, and applies new contents. If new contents fail to apply,
// it tries again, and the previous contents stay in force.
//
// The package does not interpret the configuration; the caller of New does. Start reading at Config.
package reload
