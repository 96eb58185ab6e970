// Package tick is what all formats of ids share: time cut into ticks, a number
// of ids in each, and the rule that none is handed out twice or ahead of the
// clock.
//
// A [Shape] says how a format cuts time, a [Generator] hands out runs of the ids
// of a tick, a [Limit] is the time that none may be later than, which package
// durable moves ahead. Times are milliseconds since 1970-01-01 UTC throughout,
// whatever a format's epoch and unit: that of a tick is the time it begins. How
// an id is put together, and where its sequence begins, is the format's affair.
package tick
