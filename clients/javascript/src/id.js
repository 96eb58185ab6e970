import { encode, hex, uuid } from './text.js'

/** An id: a number in a format. It is immutable. The value of an id in a run is computed when it is needed. */
export class Id {
  #format
  #value
  #run
  #index

  constructor (format, value, run, index) {
    this.#format = format
    this.#value = value
    this.#run = run
    this.#index = index
  }

  get format () { return this.#format }
  get value () { return this.#value ??= this.#run.first + this.#format.step * BigInt(this.#index) }

  toString (base) {
    if (base !== undefined) return encode(this.value, base, this.#format.size)
    return this.#run?.text ? this.#run.text(this.#index) : this.#format.text.encode(this.value)
  }

  toHex () { return hex(this.value, this.#format.size) }

  toUUID () {
    if (this.#format.size !== 16) throw new RangeError(`an id of ${this.#format.name} has ${this.#format.size} bytes, but a UUID has 16`)
    return uuid.encode(this.value)
  }

  toBytes () { return this.#write(new Uint8Array(this.#format.size)) }
  toBuffer () { return this.#write(globalThis.Buffer.alloc(this.#format.size)) }

  #write (bytes) {
    let rest = this.value
    for (let i = bytes.length - 1; i >= 0; i--, rest >>= 8n) bytes[i] = Number(rest & 255n)
    return bytes
  }

  get fields () { return this.#format.decompose(this.value) }
  get time () { return this.fields.time }
  get sequence () { return this.fields.sequence }

  get worker () {
    const { worker, machine, partition } = this.fields
    return worker ?? machine ?? partition
  }

  get date () {
    const date = new Date(Number(this.time))
    if (Number.isNaN(+date)) throw new RangeError(`${this.time} ms since 1970 is beyond the range of Date`)
    return date
  }

  withMeta (meta) {
    const field = this.#format.fields.find(({ name }) => name === 'meta')
    if (!field) throw new TypeError(`ids of ${this.#format.name} have no metabyte`)
    if (!Number.isInteger(meta) || meta < 0 || meta > 255) throw new RangeError(`the metabyte is ${String(meta)}: must be from 0 to 255`)
    return new Id(this.#format, this.value & ~(field.mask << field.shift) | BigInt(meta) << field.shift)
  }

  toJSON () { return this.toString() }

  // This makes < and > compare ids. No other operation treats ids as numbers.
  [Symbol.toPrimitive] (hint) { return hint === 'number' ? this.value : this.toString() }

  [Symbol.for('nodejs.util.inspect.custom')] () { return `Id(${this.#format.name} ${this})` }
}
