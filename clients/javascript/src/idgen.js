// Makes the ids of flake-idgen 1.4.0 in this process. It stores nothing: ids repeat after a
// restart with the clock set back, or if another generator has the same generator id.

const sequences = 0xFFF
const maxTime = 2 ** 42 - 1
const maxPause = 1000 // the maximum time until the clock is read again, in ms

// In Node.js, nextTick is faster, and flake-idgen uses it too.
const later = globalThis.process?.nextTick ?? ((cb, err, id) => queueMicrotask(() => cb(err, id)))

/** A generator with the options, properties and errors of flake-idgen. */
export default class FlakeId {
  constructor (options) {
    this.options = options ?? {}
    const { id, datacenter, worker, epoch, seqMask } = this.options
    if (id !== undefined) {
      this.id = whole('id', id, 0, 1023)
    } else {
      this.datacenter = whole('datacenter', datacenter, 0, 31)
      this.worker = whole('worker', worker, 0, 31)
      this.id = this.datacenter << 5 | this.worker
    }
    this.epoch = whole('epoch', epoch, 0, Number.MAX_SAFE_INTEGER)
    this.seqMask = whole('seqMask', seqMask, 0, sequences) || sequences
    // The state is behind a function, so that two generators are never equal, a clone fails, and proxies work.
    const ids = new Ids(this)
    this.ids = () => ids
  }

  next (cb) { return this.ids().next(cb) }
}

class Ids {
  #of
  #lastTime = 0
  #sequence = 0
  #used = false // whether all ids of the last time are used
  #waiting = [] // callbacks, in order

  constructor (of) { this.#of = of }

  next (cb) {
    if (!cb) return this.#make()
    if (this.#waiting.push(cb) === 1) this.#answer()
  }

  #make () {
    const { id, epoch, seqMask } = this.#of
    const time = Date.now() - epoch
    if (time > maxTime) throw failure('time_exceeded', `The time is ${time} ms after the epoch, which does not fit an id's 42 bits`)
    if (time < this.#lastTime) {
      const wait = this.#lastTime - time
      throw failure('clock_running_backwards', `Clock moved backwards. Refusing to generate id for ${wait} milliseconds`, wait)
    }
    if (time > this.#lastTime) {
      this.#used = false
      this.#sequence = 0
    } else if (!this.#used) {
      this.#sequence = this.#sequence + 1 & seqMask
      this.#used = this.#sequence === 0
    }
    if (this.#used) {
      throw failure('sequence_exceeded', 'Sequence exceeded its maximum value. Provide callback function to handle sequence overflow', 1)
    }
    this.#lastTime = time
    return bytes(time, id << 12 | this.#sequence)
  }

  // Calls back in the order of the calls, until it must wait for the next id.
  #answer () {
    let done = 0
    for (const cb of this.#waiting) {
      let id
      let err = null
      try { id = this.#make() } catch (e) { err = e }
      if (err?.wait) {
        setTimeout(() => this.#answer(), Math.min(err.wait, maxPause))
        break
      }
      later(cb, err, id)
      done++
    }
    this.#waiting.splice(0, done)
  }
}

function bytes (time, low) {
  const id = globalThis.Buffer ? Buffer.alloc(8) : new Uint8Array(8)
  let high = Math.floor(time / 2 ** 10)
  low |= (time & 0x3FF) << 22
  for (let i = 3; i >= 0; i--, high >>>= 8, low >>>= 8) {
    id[i] = high
    id[i + 4] = low
  }
  return id
}

// Refuses values that do not fit. flake-idgen masks them, so two of its generators could have the same generator id.
function whole (what, value, from, to) {
  const number = Number(value ?? 0)
  if (!Number.isInteger(number) || number < from || number > to) {
    throw new RangeError(`${what} is ${String(value)}: must be an integer from ${from} to ${to}`)
  }
  return number
}

function failure (code, message, wait) {
  return Object.assign(new Error(message), { code, wait })
}
