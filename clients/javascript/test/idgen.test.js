import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import test from 'node:test'
import FlakeId from 'flake-client/idgen'

const require = createRequire(new URL('../../../flake/snowflake/testdata/idgen/', import.meta.url))
const Theirs = require('flake-idgen')
const random = n => Math.floor(Math.random() * n)

function clock (t, now) {
  const real = Date.now
  Date.now = now
  t.after(() => { Date.now = real })
}

function draw () {
  const options = {}
  switch (random(4)) {
    case 0: options.id = random(1024); break
    case 1: options.datacenter = random(32); options.worker = random(32); break
    case 2: options[random(2) ? 'datacenter' : 'worker'] = random(32)
  }
  if (random(2)) options.epoch = random(2 ** 41)
  if (random(2)) options.seqMask = random(2 ** (1 + random(12)))
  return options
}

test('ids and errors are the same as those of flake-idgen', t => {
  let now
  clock(t, () => now)
  const call = generator => {
    try { return generator.next().toString('hex') } catch (err) { return err.message }
  }
  let ids = 0
  const failures = { Clock: 0, Sequence: 0 }
  for (let i = 0; i < 100; i++) {
    const options = draw()
    const [ours, theirs] = [new FlakeId(options), new Theirs(options)]
    for (const property of ['options', 'id', 'datacenter', 'worker', 'epoch', 'seqMask']) assert.equal(ours[property], theirs[property], property)
    const first = options.epoch ?? 0
    now = first + random(2 ** random(42))
    for (let step = 0; step < 10; step++) {
      for (let n = i === 0 || !random(100) ? 4100 : random(6); n >= 0; n--) {
        const want = call(theirs)
        const got = call(ours)
        if (got !== want) assert.equal(got, want, `${JSON.stringify(options)} at ${now}`)
        if (want.includes(' ')) failures[want.split(' ')[0]]++
        else ids++
      }
      now += [1, 2, random(2 ** random(41)), -random(2 ** random(20))][random(4)]
      now = Math.min(Math.max(now, first), first + 2 ** 42 - 1)
    }
  }
  t.diagnostic(`${ids} equal ids, and failures ${JSON.stringify(failures)}`)
  assert.ok(ids > 500 && failures.Clock > 50 && failures.Sequence > 50)
})

test('callbacks run in the order of the calls, across milliseconds', async () => {
  const generator = new FlakeId({ seqMask: 3 })
  const ids = await Promise.all(Array.from({ length: 50 }, () => new Promise((resolve, reject) => generator.next((err, id) => {
    err ? reject(err) : resolve(id.toString('hex'))
  }))))
  assert.deepEqual([...ids].sort(), ids)
  assert.equal(new Set(ids).size, 50)
})

test('a callback waits while the clock is behind', async t => {
  let now = 1000
  clock(t, () => now)
  const generator = new FlakeId()
  generator.next()
  now = 998
  const waiting = new Promise(resolve => generator.next((_, id) => resolve(id)))
  assert.throws(() => generator.next(), { code: 'clock_running_backwards' })
  now = 1000
  assert.equal((await waiting).readUInt32BE(4), 1000 * 2 ** 22 % 2 ** 32 + 1)
})

test('values that flake-idgen masks are refused', t => {
  for (const options of [{ id: 1024 }, { id: -1 }, { datacenter: 32 }, { worker: 1.5 }, { worker: 'x' }, { epoch: NaN }, { seqMask: 4096 }]) {
    assert.throws(() => new FlakeId(options), RangeError)
  }
  assert.equal(new FlakeId({ worker: '7', datacenter: '9' }).id, 295)
  assert.equal(new FlakeId(null).id, 0)
  clock(t, () => 2 ** 42)
  assert.throws(() => new FlakeId().next(), { code: 'time_exceeded' })
  return new Promise(resolve => new FlakeId().next(err => {
    assert.equal(err.code, 'time_exceeded')
    resolve()
  }))
})
