import { FlakeError } from './errors.js'
import { formatOf } from './format.js'
import { Nodes } from './nodes.js'
import { none } from './options.js'

const maxLease = 1 << 20
const maxWaiting = 1 << 20

/** Ids of a generator, leased ahead. */
export class FlakeClient {
  // The state is behind a function, so that two clients are never equal, a clone fails, and proxies work.
  constructor (options) {
    const leases = new Leases(options)
    this.leases = () => leases
    Object.freeze(this)
  }

  next (options) { return this.leases().ids(1, options, true) }
  nextN (n, options) { return this.leases().ids(n, options, false) }
  close () { this.leases().close() }
}

class Leases {
  #nodes
  #format
  #size
  #maxAge
  #timeout
  #current // the lease that ids are taken from
  #next // the lease after it
  #fetching // an AbortController, while a lease is fetched
  #waiting = new Set() // waiting calls, in order
  #wanted = 0 // how many ids these calls wait for
  #closed = false

  constructor ({
    nodes, token, generator = 'flake', format = 'flake', timeout = 5000, lease: { size = 1000, maxAge = 100, ...ofLease } = {}, ...rest
  } = {}) {
    none('FlakeClient', rest)
    none('lease', ofLease)
    this.#size = whole('lease.size', size, 1, maxLease)
    this.#maxAge = whole('lease.maxAge', maxAge, 1, 60000)
    this.#timeout = whole('timeout', timeout, 1, 3600000)
    this.#format = formatOf(format)
    this.#nodes = new Nodes({ nodes, token, generator, format: this.#format, timeout })
  }

  // Resolves to one id, or to a list of n ids.
  ids (n, options, one) {
    return new Promise((resolve, reject) => {
      whole('n', n, 1, maxLease)
      const signal = options?.signal
      signal?.throwIfAborted()
      if (this.#closed) throw closed()
      const call = { n, one, began: performance.now(), resolve, reject }
      if (this.#waiting.size === 0 && this.#serve(call, call.began)) return
      if (this.#wanted + n > maxWaiting) throw new FlakeError('busy', `calls for ${this.#wanted} ids are already waiting`)
      this.#wait(call, signal)
    })
  }

  close () {
    this.#closed = true
    this.#current = this.#next = undefined
    this.#fetching?.abort(closed())
    for (const call of this.#waiting) call.end(closed())
  }

  #wait (call, signal) {
    const abort = () => call.end(signal.reason)
    const timer = setTimeout(() => call.end(this.#nodes.failure()), this.#timeout)
    call.end = err => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      this.#waiting.delete(call)
      this.#wanted -= call.n
      if (err) call.reject(err)
    }
    signal?.addEventListener('abort', abort)
    this.#waiting.add(call)
    this.#wanted += call.n
    this.#fetch()
  }

  // If a lease has enough ids for a call, resolves the call with ids of that lease. Returns whether it did.
  #serve (call, now = performance.now()) {
    const usable = lease => lease && lease.left >= call.n && (now - lease.asked <= this.#maxAge || lease.asked >= call.began)
    if (!usable(this.#current)) {
      if (!usable(this.#next)) return false
      this.#current = this.#next
      this.#next = undefined
    }
    const lease = this.#current
    const ids = take(lease, call.n, this.#format)
    call.resolve(call.one ? ids[0] : ids)
    // An unused lease is not renewed.
    if (!this.#next && (lease.left <= lease.total / 2 || now - lease.asked >= this.#maxAge / 2)) this.#fetch()
    return true
  }

  // Fetches a lease. It keeps trying while calls wait. If none wait, it fetches ahead, and gives up
  // after the timeout of a call.
  async #fetch () {
    if (this.#fetching) return
    this.#fetching = new AbortController()
    const { signal } = this.#fetching
    const began = performance.now()
    const wanted = () => this.#waiting.size > 0 || performance.now() - began < this.#timeout
    let size
    let failed
    try {
      const lease = await this.#nodes.lease(() => (size = Math.max(this.#size, this.#wanted)), wanted, signal)
      if (lease && !this.#closed) this.#next = { ...lease, total: size, left: size, run: 0, used: 0 }
    } catch (err) {
      failed = err
    }
    this.#fetching = undefined
    for (const call of this.#waiting) {
      if (!failed && !this.#serve(call)) return this.#fetch()
      call.end(failed)
    }
  }
}

// Removes the next ids from a lease and returns them.
function take (lease, n, format) {
  const ids = []
  lease.left -= n
  while (ids.length < n) {
    const run = lease.runs[lease.run]
    ids.push(new format.Id(run.first + format.step * BigInt(lease.used++)))
    if (lease.used === run.count) {
      lease.run++
      lease.used = 0
    }
  }
  return ids
}

function whole (what, value, from, to) {
  if (!Number.isInteger(value) || value < from || value > to) throw new RangeError(`${what} is ${String(value)}: must be an integer from ${from} to ${to}`)
  return value
}

const closed = () => new FlakeError('closed', 'the client is closed')
