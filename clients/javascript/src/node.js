import { NodeError } from './errors.js'
import { none } from './options.js'

// A lease of a million ids takes at most 150 kB.
const maxBody = 1 << 20

/** One node, asked over HTTP. */
export class Node {
  constructor (node, token) {
    const { url, token: its = token, ...rest } = typeof node === 'object' && !(node instanceof URL) ? node : { url: node }
    none('nodes', rest)
    this.url = address(url)
    if (its !== undefined && !/^[!-~]+\s*$/.test(its)) { // fetch would fail with an error that shows the token
      throw new TypeError(`the token for ${this.url.href} is empty or has characters that are not allowed in a header`)
    }
    this.headers = { Accept: 'application/json', ...(its === undefined ? {} : { Authorization: `Bearer ${its}` }) }
  }

  /** Asks for n ids and returns their runs. An error is a NodeError. */
  async lease (generator, format, n, signal) {
    const url = new URL('v1/leases', this.url)
    url.search = new URLSearchParams({ generator, n })
    let answer, body
    try {
      answer = await fetch(url, { method: 'POST', headers: this.headers, cache: 'no-store', redirect: 'error', signal })
      body = await textOf(answer)
    } catch (err) {
      if (err instanceof RangeError) throw this.error('bad_answer', err.message)
      if (signal.aborted) throw this.silent()
      throw this.error('unreachable', err.cause?.message ?? err.message, { cause: err })
    }
    if (answer.status !== 200) throw this.#refusal(answer, body)
    try {
      return runsOf(JSON.parse(body), format, n)
    } catch (err) {
      throw this.error('bad_answer', `generator ${generator}, read as ${format.name}: ${err.message}`, { cause: err })
    }
  }

  silent () {
    return this.error('timeout', 'it did not answer in time')
  }

  error (code, message, options) {
    return new NodeError(code, this.url.href, message, options)
  }

  // A node says why in a problem document (RFC 9457).
  #refusal (answer, body) {
    let problem = {}
    try { problem = Object(JSON.parse(body)) } catch {}
    const err = this.error(answer.status < 500 && ![408, 429].includes(answer.status) ? 'refused' : 'unavailable',
      printable(problem.detail ?? `it answered with status ${answer.status}`))
    err.status = answer.status
    if (problem.reason !== undefined) err.reason = printable(problem.reason)
    return err
  }
}

function address (url) {
  let found
  try { found = new URL(url, globalThis.location?.href) } catch {}
  if (!found || !/^https?:$/.test(found.protocol) || found.search || found.hash ||
      found.username || found.password) {
    const shown = String(url).replace(/^.*@/s, 'xxxxx@') // without a password
    throw new TypeError(`the node is ${JSON.stringify(shown)}: must be a URL such as http://127.0.0.1:8465`)
  }
  if (!found.pathname.endsWith('/')) found.pathname += '/'
  return found
}

async function textOf (answer) {
  const decoder = new TextDecoder()
  const reader = answer.body?.getReader()
  let text = ''
  for (let size = 0; reader;) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.length
    if (size > maxBody) {
      await reader.cancel()
      throw new RangeError(`the answer is larger than ${maxBody} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
  return text + decoder.decode()
}

function runsOf ({ leases }, format, n) {
  let rest = n
  const runs = leases.map(({ first, count }) => {
    if (!Number.isInteger(count) || count < 1 || count > rest) throw new Error(`a run of ${count} ids: must be 1 to ${rest}`)
    rest -= count
    const { value } = own(first, format)
    format.id(value + format.step * BigInt(count - 1)) // fails if it is beyond the highest id
    if (count > format.left(value)) throw new Error(`a run of ${count} ids, but only ${format.left(value)} have the time of the first`)
    return { first: value, count }
  })
  if (rest > 0) throw new Error(`${n - rest} ids instead of ${n}`)
  return runs
}

// A node writes ids as their format's own text. Any other text is from a different format.
function own (text, format) {
  const id = format.parse(text)
  if (String(id) !== text) throw new Error(`${JSON.stringify(text)} is not how ids of ${format.name} are written`)
  return id
}

// Other servers may answer with any JSON. String of an object could call its toString, which is not a function.
const printable = value => (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\p{C}/gu, '\uFFFD')
