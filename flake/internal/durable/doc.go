// Package durable keeps a mark on disk ahead of every id of a generator. A generator may use
// times up to a mark only once the mark is durable. So whatever happens to the process or the
// clock, the next process finds a mark that no id has passed.
//
// [Core] is the part that the generators of all formats have in common: it opens and closes
// them. [OpenOn] opens a generator on a simulated machine.
package durable
