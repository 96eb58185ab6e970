// Package durable keeps a mark on disk ahead of every id of a generator. A generator may use
// the time up to a mark only once the mark is durable, so whatever happens to the process or
// the clock, the next process finds a mark that no id has passed.
//
// [Core] is the common part of the generators of all formats: it opens and closes
// them. [OpenOn] opens one on a simulated machine.
package durable
