// Package durable keeps a mark on disk ahead of every id that a generator hands
// out. A generator may use the time up to a mark only once it is durable, so
// whatever happens to the process and to the clock, the next one finds a mark
// that no id is past.
//
// [Core] is what the generators of the formats are made of: it opens and closes
// them. [OpenOn] does the same on a machine that is only simulated.
package durable
