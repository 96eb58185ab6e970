// Package digits writes and reads numbers of up to 128 bits in the bases 2 to 62:
// the text that all formats of ids share.
//
// A [Size] is how many bits the numbers of a format have, on which the width of
// padded text and the highest number depend. Numbers come and go as two halves,
// hi and lo.
package digits
