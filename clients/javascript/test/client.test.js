import assert from 'node:assert/strict'
import test, { after, describe } from 'node:test'
import { FlakeClient, FlakeError, formats, NoNodeError } from 'flake-client'
import { flakeText, leaser, serve, until } from './node.js'

// A client with a long timeout, unless the test sets another.
function client (nodes, options) {
  const c = new FlakeClient({ nodes, timeout: 60000, ...options })
  after(() => c.close())
  return c
}

const held = new Map() // timers that tests call, by their time in ms
const { setTimeout } = globalThis
globalThis.setTimeout = (call, ms, ...args) => {
  if (!held.has(ms)) return setTimeout(call, ms, ...args)
  held.get(ms).push(call)
}

/** Returns the timers with a time that no other timers have. They fire only when the test calls them. */
function hold (ms) {
  assert.ok(!held.has(ms))
  held.set(ms, [])
  return held.get(ms)
}

const ascend = ids => assert.ok(ids.every((id, i) => i === 0 || ids[i - 1] < id), String(ids.slice(0, 20)))

test('calls share a lease, and the next is fetched ahead', async () => {
  const node = await serve(leaser())
  const c = client(node.url, { lease: { size: 10, maxAge: 60000 } })
  const first = await Promise.all(Array.from({ length: 4 }, () => c.next()))
  assert.equal(node.requests.length, 1)
  const more = []
  for (let i = 0; i < 6; i++) more.push(await c.next())
  await until(() => node.requests.length === 2)
  const all = [...first, ...more, ...await c.nextN(10)]
  ascend(all)
  assert.equal(new Set(all.map(String)).size, 20)
})

test('1,000 calls of one tick make one request', async () => {
  const node = await serve(leaser())
  const c = client(node.url, { lease: { maxAge: 60000 } })
  const ids = await Promise.all(Array.from({ length: 1000 }, () => c.next()))
  assert.equal(node.requests.length, 1)
  ascend(ids)
})

test('the text of a leased id is the text of its value', async () => {
  const count = 5000
  for (const sequence of [0n, 31n, 0xFFFFn - 4999n]) {
    const first = String(formats.ulid.id(1795256835068n << 80n | sequence << 64n | 0xEFEDCBA98765n << 16n | 0x4321n))
    const node = await serve((_, response) => response.end(JSON.stringify({ leases: [{ first, count }] })))
    const ids = await client(node.url, { format: 'ulid', lease: { size: count, maxAge: 60000 } }).nextN(count)
    assert.equal(String(ids[0]), first)
    ascend(ids)
    ids.forEach((id, i) => {
      assert.equal(id.sequence, sequence + BigInt(i))
      assert.equal(String(id), id.toString('crockford'))
    })
  }
})

test('more calls than a lease has ids get a larger lease', async () => {
  const node = await serve(leaser())
  const c = client(node.url, { lease: { size: 2, maxAge: 60000 } })
  const one = c.next()
  const all = [await one, ...await Promise.all(Array.from({ length: 500 }, () => c.next())), ...await c.nextN(1000)]
  ascend(all)
  assert.equal(all.length, 1501)
})

test('ids of an old lease are dropped, and an unused lease is not renewed', async t => {
  let now = 1
  t.mock.method(performance, 'now', () => now)
  const node = await serve(leaser())
  const c = client(node.url, { lease: { size: 10, maxAge: 100 } })
  assert.equal((await c.next()).time, 1n)
  now += 100
  assert.equal((await c.next()).time, 1n) // the next lease is fetched, because half the maximum age has passed
  await until(() => node.requests.length === 2)
  now += 101
  const id = await c.next()
  assert.equal(id.time, 3n)
  assert.equal(node.requests.length, 3)
})

test('a request has the token and the generator', async () => {
  const node = await serve(leaser())
  await client(`${node.url}/under/`, { token: 'secret', generator: 'orders' }).nextN(7)
  await client([{ url: node.url, token: 'own' }], { token: 'secret' }).next()
  const [one] = node.requests
  assert.equal(one.method, 'POST')
  assert.equal(one.url, '/under/v1/leases?generator=orders&n=1000')
  assert.equal(one.headers.authorization, 'Bearer secret')
  assert.ok(node.requests.some(({ headers }) => headers.authorization === 'Bearer own'))
})

test('the next node is asked when one fails', async () => {
  const bad = await serve((_, response) => response.destroy())
  const good = await serve(leaser())
  const c = client([bad.url, good.url], { lease: { size: 1, maxAge: 1 } })
  await c.next()
  await c.next()
  assert.equal(bad.requests.length, 1)
})

test('calls are repeated until a node answers', async () => {
  let rest = 5
  const lease = leaser()
  const node = await serve((request, response) => {
    if (rest-- > 0) response.writeHead(503, { 'Content-Type': 'application/problem+json' }).end('{"detail":"behind","reason":"clock_running_backwards"}')
    else lease(request, response)
  })
  await client(node.url, { lease: { maxAge: 60000 } }).next()
  assert.equal(node.requests.length, 6)
})

test('ids of a node whose clock is behind are dropped', async () => {
  const good = leaser(1n, 100n)
  let dead = false
  const one = await serve((request, response) => dead ? response.destroy() : good(request, response))
  const two = await serve(leaser(2n, 95n))
  const c = client([one.url, two.url], { lease: { size: 1, maxAge: 1 } })
  const ids = [await c.next()]
  dead = true
  ids.push(await c.nextN(5).then(all => all[0]))
  ascend(ids)
  assert.equal(ids[1].worker, 2n)
  assert.ok(two.requests.length >= 6)
})

test('no id repeats and all ascend, whatever happens to requests', async () => {
  const [lease, answered] = [leaser(), []]
  const node = await serve((request, response) => {
    const end = response.end.bind(response)
    const [late, lost, again, cut] = Array.from({ length: 4 }, () => Math.random() < 0.2)
    response.end = text => {
      if (again && answered.length > 0) text = answered[Math.floor(Math.random() * answered.length)]
      answered.push(text)
      if (lost) return response.destroy()
      if (cut) response.setHeader('Content-Length', text.length + 1)
      if (late) setTimeout(() => end(text), Math.random() * 60)
      else end(text)
    }
    lease(request, response)
  })
  const c = client([node.url, node.url], { timeout: 100, lease: { size: 5, maxAge: 20 } })
  const ids = []
  await Promise.all(Array.from({ length: 10 }, async () => {
    for (let i = 0; i < 30; i++) {
      const below = ids[ids.length - 1]
      const signal = Math.random() < 0.1 ? AbortSignal.timeout(5) : undefined
      try {
        const some = await c.nextN(Math.random() < 0.1 ? 20 : 1, { signal })
        assert.ok(below === undefined || below < some[0])
        ids.push(...some)
      } catch (err) {
        if (err.code !== 'no_node' && !signal?.aborted) throw err
      }
    }
  }))
  assert.ok(ids.length > 0)
  assert.equal(new Set(ids.map(String)).size, ids.length)
})

// What a node may answer, and the code and text of the error.
const problem = (status, detail, more) => response => response.writeHead(status, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify({ detail, ...more }))
const body = text => response => response.end(text)
const lease = (...leases) => body(JSON.stringify({ leases }))
const text = flakeText(1n << 64n)
describe('what nodes answer', { concurrency: true }, () => {
  for (const [i, [what, answer, code, words]] of [
    ['a refusal', problem(400, 'generator "x"'), 'refused', /generator "x"/],
    ['a wrong token', problem(401, 'the token\u001b[31m'), 'refused', /the token\uFFFD\[31m/],
    ['another service', response => response.writeHead(404).end('<html>'), 'refused', /status 404/],
    ['a redirect', response => response.writeHead(302, { Location: '/' }).end(), 'unreachable', /redirect/],
    ['no ids for now', problem(503, 'behind', { reason: 'clock_running_backwards' }), 'unavailable', /behind/],
    ['a reason that is not text', problem(503, { toString: 1, valueOf: 2 }, { reason: { toString: 'x' } }), 'unavailable', /"toString":1/],
    ['no JSON', body('{'), 'bad_answer', /JSON/],
    ['no leases', body('{}'), 'bad_answer', /generator flake/],
    ['too few ids', lease({ first: text, count: 9 }), 'bad_answer', /9 ids instead of 10/],
    ['too many ids', lease({ first: text, count: 5 }, { first: text, count: 6 }), 'bad_answer', /a run of 6 ids: must be 1 to 5/],
    ['no count', lease({ first: text, count: 0 }), 'bad_answer', /a run of 0 ids/],
    ['ids of another format', lease({ first: '911936766637928448', count: 10 }), 'bad_answer', /22 digits/],
    ['ids of another format that parse accepts', lease({ first: '01a2068f-3d54-7000-b972-cd8c91f86814', count: 10 }), 'bad_answer', /read as flake: "01a2068f.* is not how ids of flake are written/],
    ['ids beyond the highest', lease({ first: flakeText((1n << 128n) - 2n), count: 10 }), 'bad_answer', /is not an id/],
    ['ids beyond those of a time', lease({ first: flakeText(0xfffan), count: 10 }), 'bad_answer', /a run of 10 ids, but only 6 have/],
    ['runs that do not ascend', lease({ first: text, count: 5 }, { first: text, count: 5 }), 'not_above', /above/],
    ['an endless answer', response => { const more = () => response.write(' '.repeat(1 << 16), err => err || more()); more() }, 'bad_answer', /1048576 bytes/],
    ['half an answer', response => { response.writeHead(200, { 'Content-Length': 100 }); response.write('{'); response.destroy() }, 'unreachable', /./],
    ['no answer', () => {}, 'timeout', /in time/]
  ].entries()) {
    test(`${what} is a ${code}`, async () => {
      const node = await serve((_, response) => answer(response))
      const timeout = 1000000 + i
      const timers = hold(timeout) // of the call, and of each of its requests
      const c = client(node.url, { timeout, lease: { size: 10 } })
      let ended = false
      const failed = assert.rejects(c.next(), err => {
        assert.ok(err instanceof NoNodeError && err instanceof FlakeError)
        assert.equal(err.code, 'no_node')
        const [first] = err.errors
        assert.equal(first.code, code)
        assert.match(first.message, words)
        assert.ok(err.message.includes(first.message))
        assert.equal(first.node, `${node.url}/`)
        return true
      }).finally(() => { ended = true })
      await until(() => ended || timers.length > 2 || (code === 'timeout' && node.requests.length > 0))
      if (!ended) timers.forEach(end => end())
      await failed
      if (code === 'refused' || code === 'bad_answer') assert.equal(node.requests.length, 1)
    })
  }

  test('a silent node uses up only its share of the time', async () => {
    const silent = await serve(() => {})
    const good = await serve(leaser())
    const timeout = 3000002
    const shares = hold(timeout / 2)
    const id = client([silent.url, good.url], { timeout }).next()
    await until(() => silent.requests.length > 0)
    shares[0]()
    await id
  })

  test('a node that does not listen', async () => {
    const node = await serve(() => {})
    node.close()
    const timeout = 2000000
    const timers = hold(timeout)
    const failed = assert.rejects(client(node.url, { timeout }).next(), err => err.errors[0].code === 'unreachable')
    await until(() => timers.length > 2) // the client asks again
    timers.forEach(end => end())
    await failed
  })

  test('an answer after the timeout is dropped', async () => {
    const late = []
    const lease = leaser(1n, 2n)
    const node = await serve((request, response) => late.length < 1 ? late.push(() => leaser()(request, response)) : lease(request, response))
    const timeout = 2000001
    const timers = hold(timeout)
    const c = client(node.url, { timeout })
    const failed = assert.rejects(c.next(), NoNodeError)
    await until(() => late.length > 0)
    timers.forEach(end => end())
    await failed
    late[0]()
    const id = await c.next()
    assert.ok(id.time >= 2n)
  })
})

test('a call ends with its signal, and other calls continue', async () => {
  let answer
  const node = await serve((...pair) => { answer = () => leaser()(...pair) })
  const c = client(node.url, { lease: { maxAge: 60000 } }) // because the other call began after the lease was requested
  const controller = new AbortController()
  const ended = c.next({ signal: controller.signal })
  const other = c.next()
  await until(() => answer)
  controller.abort(new Error('enough'))
  await assert.rejects(ended, /enough/)
  await assert.rejects(c.next({ signal: AbortSignal.abort() }), { name: 'AbortError' })
  answer()
  await other
})

test('a closed client fails', async () => {
  const node = await serve(() => {})
  const c = client(node.url)
  const waiting = c.next()
  await until(() => node.requests.length > 0)
  c.close()
  await assert.rejects(waiting, { code: 'closed' })
  await assert.rejects(c.next(), { code: 'closed' })
})

test('the number of waiting calls is limited', async () => {
  const node = await serve(() => {})
  const c = client(node.url)
  const waiting = assert.rejects(c.nextN(1 << 20), { code: 'closed' })
  await assert.rejects(c.next(), { code: 'busy' })
  c.close()
  await waiting
})

test('options are checked', async () => {
  for (const [options, words] of [
    [{ nodes: [] }, /0 nodes/],
    [{ nodes: 'x' }, /"x"/],
    [{ nodes: 'ftp://x' }, /ftp/],
    [{ nodes: 'http://x?y' }, /must be a URL/],
    [{ nodes: 'http://user:PASS@x/' }, /"xxxxx@x\/": must be a URL/],
    [{ nodes: 'http://:PASS@x/' }, /"xxxxx@x\/": must be a URL/],
    [{ nodes: 'user:PA//SS@x' }, /"xxxxx@x": must be a URL/],
    [{ nodes: 'http://x', timeout: 0 }, /timeout is 0/],
    [{ nodes: 'http://x', lease: { size: 1048577 } }, /lease.size is 1048577/],
    [{ nodes: 'http://x', lease: { maxAge: 0 } }, /lease.maxAge is 0/],
    [{ nodes: 'http://x', format: 'toString' }, /format is toString/],
    [undefined, /node is "undefined"/],
    [{ nodes: 'http://x', token: 'sec\nret' }, /^TypeError: the token for http:\/\/x\/ is empty or has characters/],
    [{ nodes: 'http://x', token: '' }, /the token for/],
    [{ nodes: 'http://x', generater: 'orders' }, /FlakeClient has no option generater/],
    [{ nodes: 'http://x', lease: { age: 1 } }, /lease has no option age/],
    [{ nodes: { url: 'http://x', tokn: 'y' } }, /nodes has no option tokn/]
  ]) assert.throws(() => new FlakeClient(options), words)
  const c = client('http://127.0.0.1:1')
  for (const n of [0, 1.5, 1048577, '1']) await assert.rejects(c.nextN(n), RangeError)
})
