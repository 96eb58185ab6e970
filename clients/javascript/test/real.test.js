import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { FlakeClient, formats, snowflake } from 'flake-client'
import { front, start, until } from './node.js'

function client (nodes, options) {
  const c = new FlakeClient({ nodes, timeout: 60000, ...options })
  after(() => c.close())
  return c
}

// Random numbers, because no two nodes on a machine may have the same ones.
const random = n => Math.floor(Math.random() * n)
const generators = () => `
[[generator]]
name = "orders"
format = "snowflake"
epoch = 2020-01-01T00:00:00Z
datacenter = ${random(32)}
worker = ${random(32)}
[[generator]]
name = "old"
format = "flake-idgen"
id = ${random(1024)}
[[generator]]
name = "events"
format = "sno"
partition = ${random(65536)}
[[generator]]
name = "small"
format = "snowflake"
id = ${random(32)}
machine_bits = 5
sequence_bits = 9
time_bits = 39
epoch = 2021-01-01T00:00:00Z
[[generator]]
name = "uuids"
format = "uuidv7"
worker_id = "random"
[[generator]]
name = "ulids"
format = "ulid"
worker_id = "random"
`
const epoch = new Date('2020-01-01')
const all = [['flake', formats.flake], ['orders', snowflake({ epoch, datacenterBits: 5 })], ['old', 'flake-idgen'], ['events', 'sno'],
  ['small', snowflake({ epoch: new Date('2021-01-01'), timeBits: 39, machineBits: 5, sequenceBits: 9 })], ['uuids', 'uuidv7'], ['ulids', 'ulid']]

test('ids have the same text, fields and bounds as on the node', async () => {
  const node = await start(generators)
  for (const [generator, format] of all) {
    const ids = await client(node.url, { generator, format }).nextN(10000)
    assert.equal(new Set(ids.map(String)).size, 10000)
    const id = ids[9999]
    const answer = await fetch(`${node.url}/v1/ids/${id}?generator=${generator}`).then(answer => answer.json())
    assert.equal(answer.id, String(id))
    assert.equal(answer.format, id.format.name)
    const fields = Object.fromEntries(answer.fields.map(({ name, value }) => [name, BigInt(value)]))
    assert.deepEqual(id.fields, fields)
    const span = await fetch(`${node.url}/v1/notional?generator=${generator}&from=${id.time}&to=${id.time + 9n}`).then(answer => answer.text())
    assert.deepEqual(id.format.span(id.time, id.time + 9n).map(String), span.trim().split('\n'))
    for (const base of [2, 10, 16, 36, 37, 62]) {
      const one = await fetch(`${node.url}/v1/ids/${id.toString(base)}?generator=${generator}&base=${base}`).then(answer => answer.json())
      assert.deepEqual(one.fields, answer.fields)
    }
    await assert.rejects(client(node.url, { generator, format: format === 'sno' ? 'flake' : 'sno' }).next(), err => err.errors[0].code === 'bad_answer')
  }
  await assert.rejects(client(node.url, { generator: 'none' }).next(), /one of flake, orders, old, events, small, uuids, ulids/)
})

// Takes ids until done() is true, with several calls at a time, and returns them in order.
async function take (c, done) {
  const ids = []
  const one = async () => {
    while (!done()) {
      const below = ids.length > 0 ? ids[ids.length - 1] : undefined
      const id = await c.next()
      assert.ok(below === undefined || id > below, `${id} after ${below}`)
      ids.push(id)
    }
  }
  await Promise.all(Array.from({ length: 8 }, one))
  return ids
}

test('no id repeats, and all ascend, across kills, restarts and clock changes', async () => {
  const [one, two] = await Promise.all([start(), start()])
  const first = await front(one)
  let done = false
  const c = client([first, two.url], { lease: { size: 50, maxAge: 5 } })
  const taking = take(c, () => done)
  const other = take(client(two.url), () => done)
  await c.next()
  await one.kill('SIGKILL')
  const moved = await c.nextN(100) // more than was leased from the first node
  await two.step(-2e9) // the node has no ids for 2 s
  await until(() => fetch(`${two.url}/readyz`).then(({ status }) => status === 503, () => false))
  await one.start()
  await c.nextN(100)
  done = true
  const ids = [...await taking, ...await other]
  assert.ok(moved.length === 100 && ids.length > 0)
  assert.equal(new Set(ids.map(String)).size, ids.length)
})
