import { encode, hex, uuid } from './text.js'

/**
 * An id: a number in a format. It is immutable. Its only own property is the number, so that deep
 * comparisons, clones and proxies of ids work. The format is in the prototype: see classOf.
 */
export class Id {
  constructor (value) {
    this.value = value
    Object.freeze(this)
  }

  toString (base) { return base === undefined ? this.format.text.encode(this.value) : encode(this.value, base, this.format.size) }

  toHex () { return hex(this.value, this.format.size) }

  toUUID () {
    if (this.format.size !== 16) throw new RangeError(`an id of ${this.format.name} has ${this.format.size} bytes, but a UUID has 16`)
    return uuid.encode(this.value)
  }

  toBytes () { return write(new Uint8Array(this.format.size), this.value) }
  toBuffer () { return write(globalThis.Buffer.alloc(this.format.size), this.value) }

  get fields () { return this.format.decompose(this.value) }
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
    const field = this.format.fields.find(({ name }) => name === 'meta')
    if (!field) throw new TypeError(`ids of ${this.format.name} have no metabyte`)
    if (!Number.isInteger(meta) || meta < 0 || meta > 255) throw new RangeError(`the metabyte is ${String(meta)}: must be from 0 to 255`)
    return this.format.id(this.value & ~(field.mask << field.shift) | BigInt(meta) << field.shift)
  }

  toJSON () { return this.toString() }

  // Drivers call these for a parameter: pg, and query of mysql and mysql2. Other objects become JSON, in quotes, or SQL.
  toPostgres () { return this.toString() }
  toSqlString () { return `'${this}'` }

  // This makes < and > compare ids. No other operation treats ids as numbers.
  [Symbol.toPrimitive] (hint) { return hint === 'number' ? this.value : this.toString() }

  [Symbol.for('nodejs.util.inspect.custom')] () { return `Id(${this.format.name} ${this})` }
}

/** The class of a format's ids. */
export const classOf = format => ({ Id: class extends Id { get format () { return format } } }).Id

function write (bytes, value) {
  for (let i = bytes.length - 1; i >= 0; i--, value >>= 8n) bytes[i] = Number(value & 255n)
  return bytes
}
