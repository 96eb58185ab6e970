import { Id } from './id.js'
import { none } from './options.js'
import { canonicalOf, decode, uuid } from './text.js'

/** The layout of ids: their fields, the most significant first, and their own text form. */
export class Format {
  constructor ({ name, size, fields, text, epoch = 0, unit = 1, step = 0, order }) {
    this.name = name
    this.size = size // in bytes; bits above the fields are 0
    this.text = canonicalOf(text, this.size)
    this.epoch = BigInt(epoch)
    this.unit = BigInt(unit) // the unit of the time, in ms
    this.step = 1n << BigInt(step) // the difference between one id of a run and the next
    this.order = order // how many of the fields' highest bits ascend; undefined: all
    let shift = fields.reduce((sum, { width }) => sum + width, 0)
    this.bits = BigInt(shift)
    this.fields = Object.freeze(fields.map(({ name, width, fixed }) => {
      shift -= width
      return Object.freeze({ name, fixed, shift: BigInt(shift), mask: (1n << BigInt(width)) - 1n })
    }))
    Object.freeze(this)
  }

  id (value) {
    if (typeof value !== 'bigint') throw new TypeError(`an id as a number must be a bigint, not a ${typeof value}`)
    if (value < 0n || value >> BigInt(this.size * 8)) {
      throw new RangeError(`${value} is not an id of ${this.size} bytes`)
    }
    return this.#checked(value, RangeError)
  }

  fromBytes (bytes) {
    if (!(bytes instanceof Uint8Array)) throw new TypeError('an id as bytes must be a Uint8Array or Buffer')
    if (bytes.length !== this.size) throw new RangeError(`${bytes.length} bytes, but ids of ${this.name} have ${this.size}`)
    return this.#checked(bytes.reduce((value, byte) => value << 8n | BigInt(byte), 0n), RangeError)
  }

  parse (text, base) {
    if (typeof text !== 'string') throw new TypeError(`an id as text must be a string, not a ${typeof text}`)
    if (base !== undefined) return this.#checked(decode(text, base, this.size), SyntaxError)
    return this.#checked((this.size === 16 && text.length === 36 ? uuid : this.text).decode(text), SyntaxError)
  }

  // Except for the nil UUID, a UUID with another version or variant is not an id of the format.
  #checked (value, Failure) {
    const unfit = value && this.fields.find(({ fixed, shift, mask }) => fixed !== undefined && (value >> shift & mask) !== fixed)
    if (unfit) throw new Failure(`${this.text.encode(value)} is not an id of ${this.name}, whose ${unfit.name} is ${unfit.fixed}`)
    return new Id(this, value)
  }

  span (first, last = first) {
    const low = this.#ticks(first)
    const high = this.#ticks(last)
    const bound = (ticks, open) => this.id(this.fields.reduce((value, { name, fixed, shift, mask }) =>
      value | (name === 'time' ? ticks : fixed ?? (open && mask)) << shift, 0n))
    return [bound(low, 0n), bound(high, -1n)]
  }

  #ticks (time) {
    const ms = typeof time === 'bigint' ? time : BigInt(+time) // fails if it is not an integer
    const ticks = (ms - this.epoch) / this.unit
    const { mask } = this.fields.find(({ name }) => name === 'time')
    if (ms < this.epoch || ticks > mask) {
      throw new RangeError(`${ms} ms since 1970 is not a time of ${this.name}: must be from ${this.epoch} to ${this.epoch + (mask + 1n) * this.unit - 1n}`)
    }
    return ticks
  }

  /** The fields of an id: the time in ms since 1970, the other fields unchanged. */
  decompose (value) {
    return Object.fromEntries(this.fields.map(({ name, shift, mask }) => {
      const field = value >> shift & mask
      return [name, name === 'time' ? this.epoch + field * this.unit : field]
    }))
  }

  /** The maximum length of a run that starts with an id and keeps its time. For 8 bytes only the node knows it. */
  left (value) {
    const { sequence } = this.decompose(value)
    return this.size === 8 ? Infinity : this.fields.find(({ name }) => name === 'sequence').mask - sequence + 1n
  }

  /** Whether an id may come after the highest id of its node. */
  follows (highest, value) {
    if (this.order === undefined) return value > highest
    const rest = this.bits - BigInt(this.order)
    return value >> rest >= highest >> rest
  }
}

const field = (name, width, fixed) => ({ name, width, fixed })

/** Snowflakes: zeros, time, machine and sequence, in 64 bits. */
export function snowflake ({
  epoch = 1288834974657, timeBits = 41, machineBits = 10, datacenterBits = 0, sequenceBits = 22 - machineBits, ...rest
} = {}) {
  none('snowflake', rest)
  const machine = datacenterBits
    ? [field('datacenter', datacenterBits), field('worker', machineBits - datacenterBits)]
    : [field('machine', machineBits)]
  // With random_start, the ids of a millisecond are not ascending, so only the time is compared.
  return short('snowflake', epoch, timeBits, machine, sequenceBits, timeBits)
}

/** Ids of flake-idgen. */
export function idgen ({ epoch = 0, ...rest } = {}) {
  none('idgen', rest)
  return short('flake-idgen', epoch, 42, [field('datacenter', 5), field('worker', 5)], 12)
}

function short (name, epoch, timeBits, makers, sequenceBits, order) {
  const fields = [field('time', timeBits), ...makers, field('sequence', sequenceBits)]
  const widths = fields.map(({ width }) => width)
  const sum = widths.reduce((sum, width) => sum + width)
  if (!widths.every(width => Number.isInteger(width) && width >= 0) || sum > 64 || timeBits < 1) {
    throw new RangeError(`the bits of ${name} are ${fields.map(({ name, width }) => `${name} ${String(width)}`).join(', ')}: must be integers from 0, time from 1, and at most 64 in all`)
  }
  if (!Number.isSafeInteger(+epoch) || +epoch < 0) throw new RangeError(`the epoch is ${String(epoch)}: must be a Date or milliseconds since 1970`)
  return new Format({ name, size: 8, text: 'decimal', epoch: +epoch, order, fields })
}

/** The formats, under the names that nodes use. */
export const formats = Object.freeze({
  flake: new Format({
    name: 'flake',
    size: 16,
    text: 'base62',
    fields: [field('time', 64), field('worker', 48), field('sequence', 16)]
  }),
  snowflake: snowflake(),
  'flake-idgen': idgen(),
  sno: new Format({
    name: 'sno',
    size: 10,
    text: 'sno',
    epoch: 1262304000000,
    unit: 4,
    order: 0, // after the clock has been set back, new ids have lower times
    fields: [field('time', 39), field('tick_tock', 1), field('meta', 8), field('partition', 16), field('sequence', 16)]
  }),
  uuidv7: new Format({
    name: 'uuidv7',
    size: 16,
    text: 'uuid',
    step: 64,
    fields: [field('time', 48), field('version', 4, 7n), field('sequence', 12), field('variant', 2, 2n), field('worker', 48), field('random', 14)]
  }),
  ulid: new Format({
    name: 'ulid',
    size: 16,
    text: 'ulid',
    step: 64,
    fields: [field('time', 48), field('sequence', 16), field('worker', 48), field('random', 16)]
  })
})

/** Returns the format with the given name. A Format is returned unchanged. */
export function formatOf (format) {
  const found = format instanceof Format ? format : Object.hasOwn(formats, format) && formats[format]
  if (!found) throw new TypeError(`the format is ${String(format)}: must be one of ${Object.keys(formats).join(', ')}, or come from snowflake() or idgen()`)
  return found
}
