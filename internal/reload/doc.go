// Package reload keeps what was made of a configuration file current: it follows the file and those that
// it names, and has new contents applied. What fails to apply is tried again, and what was in force
// stays.
//
// It knows no configuration; whoever makes a Watcher does. Start reading at Config.
package reload
