import { NoNodeError } from './errors.js'
import { Node } from './node.js'

const maxNodes = 100

// The pauses between rounds of all nodes, in ms. They double from the first up to the last.
const firstPause = 2
const lastPause = 500

/** Several nodes. One node is asked until it fails, then the next node. */
export class Nodes {
  #nodes
  #generator
  #format
  #timeout
  #first = 0 // the index of the node to ask first
  #asked // the index of the node last asked
  #highest // the last id of the last lease, and the index of its node
  #errors = [] // why nodes failed since the last lease, by index

  constructor ({ nodes, token, generator, format, timeout }) {
    const all = Array.isArray(nodes) ? nodes : [nodes]
    if (all.length < 1 || all.length > maxNodes) {
      throw new RangeError(`${all.length} nodes: must be from 1 to ${maxNodes}`)
    }
    this.#nodes = all.map(node => new Node(node, token))
    this.#generator = generator
    this.#format = format
    this.#timeout = timeout
  }

  /**
   * Asks for n() ids until a node answers. It returns undefined when wanted() is false, and
   * fails if no node will ever answer. Each node may use up its share of the timeout.
   */
  async lease (n, wanted, signal) {
    this.#errors = []
    for (let pause = firstPause; ; pause = Math.min(2 * pause, lastPause)) {
      const first = this.#first
      for (let i = 0; i < this.#nodes.length; i++) {
        const place = (first + i) % this.#nodes.length
        try {
          const lease = await this.#ask(place, n(), signal)
          this.#first = place
          return lease
        } catch (err) {
          if (signal.aborted) throw signal.reason
          if (!this.#errors[place] || err.code !== 'timeout') this.#errors[place] = err // a short last request may time out
          if (!wanted()) return
        }
      }
      if (!this.#errors.some(({ passes }) => passes)) throw this.failure()
      await sleep(pause, signal)
      if (!wanted()) return
    }
  }

  /** Says why there is no lease yet. */
  failure () {
    const errors = [...this.#errors]
    errors[this.#asked] ??= this.#nodes[this.#asked].silent()
    return new NoNodeError(errors.filter(err => err)) // nodes that were not asked have no error
  }

  async #ask (place, n, signal) {
    this.#asked = place
    const request = new AbortController()
    const abort = () => request.abort()
    const timer = setTimeout(abort, this.#timeout / this.#nodes.length)
    signal.addEventListener('abort', abort)
    try {
      const asked = performance.now()
      const runs = await this.#nodes[place].lease(this.#generator, this.#format, n, request.signal)
      signal.throwIfAborted()
      this.#check(runs, place)
      return { runs, asked }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  // The ids of one node ascend as its format specifies. The ids of a different node must be above all earlier ids.
  #check (runs, place) {
    let highest = this.#highest
    for (const { first, count } of runs) {
      if (highest && !(highest.place === place ? this.#format.follows(highest.value, first) : first > highest.value)) {
        throw this.#nodes[place].error('not_above', 'its ids are not above earlier ones, because its clock is behind')
      }
      highest = { value: first + this.#format.step * BigInt(count - 1), place }
    }
    this.#highest = highest
  }
}

function sleep (ms, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
