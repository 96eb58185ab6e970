// Reads ids with the npm packages uuid and ulid, and makes some: node ids.js N
//
// For each line of standard input, a UUID of version 7 or a ULID, it prints the time in ms that the
// package reads, or why the package rejects it. Then it prints N ids of each function, with their
// times.
const readline = require('node:readline')
const uuid = require('uuid')
const ulid = require('ulid')

function timeOfUUID (text) {
  if (!uuid.validate(text) || uuid.version(text) !== 7) return 'refused'
  const bytes = uuid.parse(text)
  if (uuid.stringify(bytes) !== text.toLowerCase()) return 'another text'
  return bytes.slice(0, 6).reduce((ms, b) => ms * 256 + b, 0)
}

function timeOfULID (text) {
  try {
    return ulid.isValid(text) ? ulid.decodeTime(text) : 'refused'
  } catch (err) { // beyond 48 bits, which isValid accepts
    return 'refused'
  }
}

const last = 2 ** 48 - 1
const times = [0, 1, Date.now(), last - 1, last]
const all255 = new Uint8Array(16).fill(255)
const all0 = new Uint8Array(16)

function * theirs (n) {
  for (const msecs of times) {
    for (const random of [all0, all255]) {
      for (const seq of [0, 2 ** 31 - 1, 2 ** 32 - 1]) yield [uuid.v7({ msecs, random, seq }), msecs]
    }
    // ulid treats a time of 0 as missing.
    for (const value of msecs ? [0, 1 - Number.EPSILON] : []) yield [ulid.ulid(msecs, () => value), msecs]
  }
  const monotonic = ulid.monotonicFactory()
  for (let i = 0; i < n; i++) {
    for (const text of [uuid.v7(), ulid.ulid(), monotonic()]) yield [text, text.length === 36 ? timeOfUUID(text) : timeOfULID(text)]
  }
}

async function main () {
  let out = []
  const put = line => {
    out.push(line)
    if (out.length === 10000) flush()
  }
  const flush = () => {
    process.stdout.write(out.map(line => line + '\n').join(''))
    out = []
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    put(line.length === 36 ? timeOfUUID(line) : timeOfULID(line))
  }
  for (const [text, time] of theirs(Number(process.argv[2]))) put(text + ' ' + time)
  flush()
}

main()
