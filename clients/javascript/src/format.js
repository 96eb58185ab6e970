import { classOf } from './id.js'
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
    this.Id = classOf(this)
    Object.freeze(this)
  }

  id (value) {
    if (typeof value !== 'bigint') throw new TypeError(`an id as a number must be a bigint, not a ${typeof value}`)
    if (value < 0n || value >> BigInt(this.size * 8)) {
      throw new RangeError(`${value} is not an id of ${this.size} bytes`)
    }
    return checked(this, value, RangeError)
  }

  fromBytes (bytes) {
    if (nameOf(bytes) !== 'Uint8Array') throw new TypeError('an id as bytes must be a Uint8Array or Buffer')
    if (bytes.length !== this.size) throw new RangeError(`${bytes.length} bytes, but ids of ${this.name} have ${this.size}`)
    return checked(this, bytes.reduce((value, byte) => value << 8n | BigInt(byte), 0n), RangeError)
  }

  parse (text, base) {
    if (typeof text !== 'string') throw new TypeError(`an id as text must be a string, not a ${typeof text}`)
    if (base !== undefined) return checked(this, decode(text, base, this.size), SyntaxError)
    return checked(this, (this.size === 16 && text.includes('-') ? uuid : this.text).decode(text), SyntaxError)
  }

  span (first, last = first) {
    const low = ticksOf(this, first)
    const high = ticksOf(this, last)
    const bound = (ticks, open) => this.id(this.fields.reduce((value, { name, fixed, shift, mask }) =>
      value | (name === 'time' ? ticks : fixed ?? (open && mask)) << shift, 0n))
    return [bound(low, 0n), bound(high, -1n)]
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

// A number with a bit above the time is not an id of the format. Nor is a UUID with another version or variant,
// except for the lowest and the highest.
function checked (format, value, Failure) {
  if (value >> format.bits) throw new Failure(`${format.text.encode(value)} is not an id of ${format.name}, whose ids have ${format.bits} bits`)
  const unfit = value && value + 1n >> format.bits === 0n &&
    format.fields.find(({ fixed, shift, mask }) => fixed !== undefined && (value >> shift & mask) !== fixed)
  if (unfit) throw new Failure(`${format.text.encode(value)} is not an id of ${format.name}, whose ${unfit.name} is ${unfit.fixed}`)
  return new format.Id(value)
}

function ticksOf ({ name, epoch, unit, fields }, time) {
  if (!['bigint', 'number'].includes(typeof time) && nameOf(time) !== 'Date') {
    throw new TypeError(`the time is ${String(time)}: must be a Date or milliseconds since 1970`)
  }
  const ms = typeof time === 'bigint' ? time : BigInt(+time) // fails if it is not an integer
  const ticks = (ms - epoch) / unit
  const { mask } = fields.find(({ name }) => name === 'time')
  if (ms < epoch || ticks > mask) {
    throw new RangeError(`${ms} ms since 1970 is not a time of ${name}: must be from ${epoch} to ${epoch + (mask + 1n) * unit - 1n}`)
  }
  return ticks
}

// The name of an object's class. Unlike instanceof, it knows objects of other realms, such as those of a test in Jest.
const nameOf = object => Object.prototype.toString.call(object).slice(8, -1)

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

const made = new Map() // the formats of short, because ids of two formats are never equal

function short (name, epoch, timeBits, makers, sequenceBits, order) {
  const fields = [field('time', timeBits), ...makers, field('sequence', sequenceBits)]
  const widths = fields.map(({ width }) => width)
  const sum = widths.reduce((sum, width) => sum + width)
  if (!widths.every(width => Number.isInteger(width) && width >= 0) || sum > 64 || timeBits < 1) {
    throw new RangeError(`the bits of ${name} are ${fields.map(({ name, width }) => `${name} ${String(width)}`).join(', ')}: must be integers from 0, time from 1, and at most 64 in all`)
  }
  if (typeof epoch !== 'number' && nameOf(epoch) !== 'Date' || !Number.isSafeInteger(+epoch) || +epoch < 0) throw new RangeError(`the epoch is ${String(epoch)}: must be a Date or milliseconds since 1970`)
  const key = [name, +epoch, order, ...fields.map(({ name, width }) => name + width)].join()
  if (!made.has(key)) made.set(key, new Format({ name, size: 8, text: 'decimal', epoch: +epoch, order, fields }))
  return made.get(key)
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
